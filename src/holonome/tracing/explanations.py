"""Whether an error that came up while a function was traced is the user's own or would not have come without
tracing.
"""

from __future__ import annotations

import opcode
import re
import traceback
import types

import numpy as np

from holonome.tracing.origin import is_library_frame
from holonome.tracing.session import Session, Untraceable, describe_line
from holonome.tracing.values import Traced, TracedArray

_ALSO_WRONG_FOR_FLOATS = re.compile(
    r"unsupported operand|not supported between instances|bad operand|object is not|non-iterable|has no len"
    r"|returned NotImplemented|positional argument|unexpected keyword"
)
_CAUSED_BY_TRACING = re.compile(
    r"Traced|dtype\('?O'?\)|\bobject (arrays?|dtype)|dtype object|type object|loop of ufunc|not supported "
    r"for the input types",
    re.IGNORECASE,
)


def explain(error: Exception, session: Session) -> None:
    """Raise `Untraceable` in place of an error that would not have come without tracing."""
    if session.refusal is not None:
        raise session.refusal from error
    line = _line_of(error)
    if not _is_raised_by_statement(error) and _comes_from_tracing(error):
        raise Untraceable(f"it does something that traced values do not support: {error}{line}") from error
    if session.conditions:
        raise Untraceable(f"it raises {type(error).__name__} on one of its branches{line}") from error


def _line_of(error: Exception) -> str:
    """Return the innermost line of the user's code that the error passed through, as ' (line 12)'."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        if not is_library_frame(frame):
            return describe_line(frame.f_code.co_filename, line)
    return ""


def _is_raised_by_statement(error: Exception) -> bool:
    """Whether the user's code raised the error by a raise statement."""
    last: types.TracebackType | None = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return (
        last is not None
        and not is_library_frame(last.tb_frame)
        and last.tb_frame.f_code.co_code[last.tb_lasti] == opcode.opmap["RAISE_VARARGS"]
    )


def _comes_from_tracing(error: Exception) -> bool:
    if isinstance(error, AttributeError):
        kind = (
            np.ndarray
            if isinstance(error.obj, TracedArray)
            else np.float64
            if isinstance(error.obj, (Traced, float))
            else None
        )
        return kind is not None and error.name is not None and hasattr(kind, error.name)
    if type(error).__module__.partition(".")[0] == "numba":
        return True
    if not isinstance(error, (TypeError, ValueError, NotImplementedError, IndexError)):
        return False
    message = str(error)
    return bool(_CAUSED_BY_TRACING.search(message)) and not _ALSO_WRONG_FOR_FLOATS.search(message)
