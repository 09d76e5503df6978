"""Results that travel to other processes."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar


class Carried:
    """Base class of frozen dataclasses whose pickles hold the fields, and what else cannot be found from them
    where the names of bodies and joints are not known: pickles of mechanisms hold the equations.
    """

    _kept: ClassVar[tuple[str, ...]] = ()
    """Cached properties that travel as well."""

    def __getstate__(self) -> dict[str, Any]:
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in (*names, *self._kept)}

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Nothing in it can be changed."""
        return self
