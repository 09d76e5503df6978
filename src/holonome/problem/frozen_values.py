"""Values that functions have captured are frozen when a system is made; a change since is an error."""

from __future__ import annotations

from holonome.errors import ModelError
from holonome.tracing import Frozen


def require_unchanged(frozen: Frozen) -> None:
    """Refuse to go on with values that are no longer those with which the functions were traced."""
    change = frozen.first_change()
    if change is not None:
        name = change.name.rpartition(".")[2]
        raise ModelError(
            f"{change.role}: {change.name} was {change.then} when the function was traced and is now "
            f"{change.now}; the old value would be used. Make it a parameter, parameters={{{name!r}: ...}} "
            f"read as p.{name}, which solve can change, or make the system and its functions again"
        )
