"""Results that hold compiled equations and stay in their process."""

from __future__ import annotations

from typing import Any, NoReturn


class NotPickled:
    """Base class of results that cannot be pickled, and say so."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__}: cannot be pickled, as it holds its equations; keep its arrays, such as "
            "q and v, and find it again from them"
        )

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Nothing in it can be changed."""
        return self
