"""What surrounds controllers: an environment for reinforcement learning, ``hn.control.Environment``.

Stepping and sampled control themselves are :class:`holonome.Simulator` and :class:`holonome.Sampled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holonome.control.environment import Environment

__all__ = ["Environment"]


def __getattr__(name: str) -> Any:
    if name != "Environment":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from holonome.control.environment import Environment
    except ModuleNotFoundError as error:
        if error.name != "gymnasium":
            raise
        raise ModuleNotFoundError(
            "gymnasium is not installed: pip install 'holonome[gym]'", name="gymnasium"
        ) from error
    return Environment
