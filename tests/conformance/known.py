"""All exceptions to the rules of this suite: limits of methods, known defects, cells that take too long.

Every row must be true: what a row of DEFECTS says must happen, so whoever mends something removes its row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

EVERYTHING = "*"


@dataclass(frozen=True)
class Row:
    """Cells that do not simply pass.

    Attributes
    ----------
    methods, kinds, options
        Which cells: names or patterns such as "srm*", one or several.  Where the options are "*", all may
        show what the row says, and "plain" must.
    why
        What is the matter.
    result
        "refused" (an exception in good order), "stopped" (success is False, with a message) or "failed".
    sometimes
        One such cell of a kind is enough: it depends on timing, or on the steps that a method takes.
    maybe
        There need not be any: it depends on how far a method has drifted by then.
    but
        Options that are left out.
    """

    methods: str | tuple[str, ...]
    kinds: str | tuple[str, ...]
    options: str | tuple[str, ...]
    why: str
    result: str = "failed"
    sometimes: bool = False
    maybe: bool = False
    but: tuple[str, ...] = ()

    def covers(self, method: str, kind: str, option: str) -> bool:
        return (
            option not in self.but
            and _matches(option, self.options)
            and _matches(kind, self.kinds)
            and _matches(method, self.methods)
        )

    def must_show(self, option: str) -> bool:
        """Whether a cell that the row covers has no choice."""
        return not (self.sometimes or self.maybe) and (self.options != EVERYTHING or option == "plain")


def _matches(name: str, patterns: str | tuple[str, ...]) -> bool:
    several = (patterns,) if isinstance(patterns, str) else patterns
    return any(fnmatchcase(name, pattern) for pattern in several)


def rows_for(rows: Iterable[Row], method: str, kind: str, option: str) -> list[Row]:
    """The rows that cover a cell."""
    return [row for row in rows if row.covers(method, kind, option)]


SRM = ("srm", "srm, *")
UNDERLYING_BDF = ("underlying, *",)
WITHOUT_MULTIPLIERS = ("ggl[*]", "cs", "cm", "cs, bound")
POSITIONS_BY_NEWTON = ("smooth", "cs", "cm", "index3", "ggl, *", "cs, bound", "gen-alpha")
RATTLE = "rattle*"
ROPES = ("large rope", "larger rope")
DRIFTING = ("index1", "index2", "index2, *", "baumgarte*", "*no projection*")
HELD_TO_TOLERANCES = ("ggl", "ggl[*]", "ggl, *", "cs", "cm", "cs, bound", "compliant*")
MECHANICAL = ("[!as]*", "smooth")
"""All but "auto" and what begins with "srm"."""

LIMITS = [
    Row(SRM, ("no constraints", "ode"), "*", "there is nothing to regularize", "refused"),
    Row(SRM, "forces of lam", "*", "y takes the place of the multipliers", "refused"),
    Row(SRM, "invariant", "*", "nothing holds invariants", "refused"),
    Row(SRM, "massless coordinate", "*", "M must be inverted", "refused"),
    Row(("srm", "srm, singular, BDF"), "redundant rows", "*", "E = (GB)⁻¹ does not exist", "refused"),
    Row("srm, singular, BDF", "micrometres", "*", "ε = 1e-4 is too large for these lengths", "stopped"),
    Row(WITHOUT_MULTIPLIERS, "forces of lam", "*", "takes the multipliers from the forces", "refused"),
    Row("baumgarte, dopri5", "forces of lam", "*", "only with BDF", "refused"),
    Row(
        "index3, Radau",
        "micrometres",
        "constant step",
        "steps of 2 µs: rounding errors of the multipliers, divided by h², and Newton's method stagnates",
        "stopped",
    ),
    Row(UNDERLYING_BDF, "redundant rows", "*", "needs independent constraints", "refused"),
    Row(UNDERLYING_BDF, "massless coordinate", "*", "M must be inverted", "refused"),
    Row(
        "srm, dopri5",
        "bodies of their own",
        "*",
        "21 coordinates and 20 rows: its iterations do not settle",
        "stopped",
        but=("not finite in words",),
    ),
    Row(
        ("index1", "index3", "underlying, no projection, BDF", "gen-alpha"),
        "invariant",
        "backward",
        "begins where a run forward has drifted to, off the constraints; there the invariant changes",
        "refused",
    ),
    Row("*", "taut rope", "backward", "impacts cannot be undone", "refused"),
    Row("smooth", "taut rope", "*", "contacts interrupt the slow motion", "refused"),
    Row(SRM, "taut rope", "*", "there is nothing to regularize while contacts are open", "refused"),
    Row(
        DRIFTING,
        "taut rope",
        "*",
        "drifts off the gap of a closed contact, which then counts as penetrated",
        "stopped",
        sometimes=True,
    ),
    Row("index3", "taut rope", "*", "thousands of steps at the start", "stopped", sometimes=True),
    Row("index3", "taut rope", ("constant step", "not finite in words"), "the same"),
    Row(
        (*HELD_TO_TOLERANCES, "gen-alpha", "index3, Radau"),
        "taut rope",
        "dense output",
        "the gap of a closed contact is not among the residuals that the check allows for",
        sometimes=True,
    ),
    Row(
        (*DRIFTING, *SRM),
        "*",
        "acting event",
        "begins anew on the constraints, off which it had drifted: there the event is ahead once more",
        maybe=True,
    ),
    Row(
        DRIFTING,
        "invariant",
        "acting event",
        "begins anew where it has drifted off the constraints; there the invariant changes",
        "stopped",
        maybe=True,
    ),
    Row(
        "srm, dopri5",
        "large rope",
        "sampled",
        "begins anew at ticks, where its velocities have drifted off the constraints",
        "stopped",
        maybe=True,
    ),
    Row("smooth", "*", "acting event", "the slow motion is that of a whole run", "refused"),
    Row(
        (*SRM, "auto"), ("index 2", "index 3"), "acting event", "general problems have no actions", "refused"
    ),
    Row(
        "taylor",
        ("unknowns", "forces of lam", "numba force", "python *"),
        "*",
        "every function must be an expression of t, q, v and s",
        "refused",
    ),
    Row(
        "taylor",
        ("redundant rows", "massless coordinate", "larger rope"),
        "*",
        "has the emitted elimination alone",
        "refused",
    ),
    Row(MECHANICAL, ("index 2", "index 3"), "*", "made for mechanical systems", "refused"),
    Row(
        (
            "index1",
            "index3",
            "index3, Radau",
            "ggl, Radau",
            "baumgarte*",
            "*no projection*",
            "gen-alpha",
        ),
        "invariant",
        "sampled",
        "begins anew at ticks, where it has drifted off the constraints; there the invariant changes",
        "stopped",
        sometimes=True,
    ),
    Row("smooth", "*", "sampled", "the slow motion is that of a whole run", "refused"),
    Row(RATTLE, ("states", "ode"), "*", "first-order states that depend on themselves", "refused"),
    Row(RATTLE, ("velocity constraint", "both constraints"), "*", "not symplectic", "refused"),
    Row(RATTLE, "forces of lam", "*", "not symplectic", "refused"),
    Row(RATTLE, "invariant", "*", "nothing holds invariants", "refused"),
    Row(RATTLE, "*", ("step bounds", "few steps"), "takes steps of one size", "refused"),
    Row((*SRM, "auto"), ("index 2", "index 3"), "sampled", "general problems have no inputs", "refused"),
    Row((*SRM, "auto"), ("index 2", "index 3"), "repair", "general problems are not repaired", "refused"),
]
"""What methods cannot do, and say so."""

DEFECTS = [
    Row(
        ("bdf", "underlying, BDF", "projection, *"),
        ROPES,
        ("acting event", "sampled"),
        "velocity constraints are off by up to 1e-11 where a long rope begins anew",
        maybe=True,
    ),
    Row(
        POSITIONS_BY_NEWTON,
        "python constraint",
        "*",
        "the multipliers carry the noise of the differences that take the place of derivatives",
        sometimes=True,
    ),
    Row(
        "index3",
        "bodies and joints",
        "terminal event",
        "no test controls its multipliers, which are rough between steps",
    ),
]
"""What is wrong today."""

NOT_RUN = [
    Row(("srm, *BDF", "baumgarte"), "python constraint", "*", "thousands of steps, which call Python"),
    Row(
        ("srm", "srm, dopri5", "heun", "baumgarte, dopri5"),
        "python constraint",
        "*",
        "the same",
        but=("plain",),
    ),
    Row("srm, dopri5", "bodies of their own", "not finite in words", "stops before"),
    Row("srm, singular, BDF", ROPES, "*", "thousands of steps", but=("plain",)),
    Row("srm, dopri5", "larger rope", "*", "more than 5000 steps"),
    Row(
        ("smooth", "dopri5", "heun", "ggl[*]", "cm", "srm", "index[13]", "baumgarte"),
        "larger rope",
        "four threads",
        "long to compile, and like others",
    ),
]
"""Cells that take too long, or would crash once more."""
