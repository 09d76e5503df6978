"""What a random system is made of: a few choices, drawn by chance, that fit together."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

LARGEST = {"chain": 6, "loop": 6, "rigid bodies": 4, "surface": 4, "angles": 5, "rows": 8, "coordinates": 12}
"""Of each kind of mechanism, the largest number of points, bodies or coordinates."""

SMALLEST = {"loop": 2, "rows": 2}
GENERAL = ("ode", "index 2", "index 3")


@dataclass(frozen=True)
class Structure:
    """The choices.  Two systems have one structure if they differ in their numbers alone."""

    bodies: str
    size: int
    mass: str = "constant"
    inertial: str | None = None
    moving: bool = False
    velocity_constraint: bool = False
    redundant: bool = False
    massless: bool = False
    states: bool = False
    unknowns: str = ""
    friction: bool = False
    spring: str = ""
    damping: str = ""
    elastic: str = ""
    in_time: str = ""
    in_space: str = ""
    invariant: bool = False
    parameters: bool = False
    called: str = ""
    scaled: bool = False

    @property
    def name(self) -> str:
        words = [f"{self.bodies} {self.size}"]
        for choice, value in list(asdict(self).items())[2:]:
            if value:
                words.append(choice if value is True else f"{choice} {value}")
        return ", ".join(words)


def draw(random: np.random.Generator) -> Structure:
    """A structure by chance."""
    maybe = lambda chance: bool(random.random() < chance)  # noqa: E731
    one_of = lambda *choices: choices[random.integers(len(choices))]  # noqa: E731
    if maybe(0.12):
        kind = one_of(*GENERAL)
        return Structure(
            kind,
            int(random.integers(2, 9)),
            moving=maybe(0.5),
            parameters=maybe(0.3),
            in_time=one_of("", "", "jump", "table") if kind == "ode" else "",
            spring=one_of("", "stiff") if kind == "ode" else "",
            scaled=maybe(0.3),
        )
    bodies = one_of(*LARGEST)
    size = int(random.integers(SMALLEST.get(bodies, 1), LARGEST[bodies] + 1))
    constrained = bodies not in ("coordinates", "angles")
    mass = "of q" if bodies == "angles" else one_of("constant", "constant", "full", "of q", "of t")
    damping = one_of("", "", "linear", "drag")
    friction = constrained and maybe(0.15)
    in_space = one_of("", "", "", "where", "abs")
    inertial = None
    if mass == "of q":
        nothing_else = damping != "drag" and not friction
        inertial = one_of("derived", "in force", *(("found", "found in force") if nothing_else else ()))
    elif mass == "of t":
        inertial = one_of(None, "derived")
    conservative = not (damping or friction or in_space) and mass != "of t"
    invariant = conservative and maybe(0.3)
    further = (lambda chance: maybe(chance)) if not invariant else (lambda chance: False)
    called = one_of("force", "constraint") if maybe(0.12) and size <= 4 else ""
    return Structure(
        bodies,
        size,
        mass,
        inertial,
        moving=constrained and further(0.25),
        velocity_constraint=bodies != "loop" and size > 1 and further(0.2),
        redundant=constrained and not friction and maybe(0.15),
        massless=constrained and size > 1 and further(0.12),
        states=further(0.2),
        unknowns=one_of("force", "constraint") if further(0.15) and constrained else "",
        friction=friction,
        spring=one_of("", "soft", "soft", "stiff"),
        damping=damping,
        elastic=one_of("soft", "stiff") if further(0.2) else "",
        in_time=one_of("jump", "table", "sine") if further(0.35) else "",
        in_space=in_space,
        invariant=invariant,
        parameters=maybe(0.3),
        called="" if called == "constraint" and not constrained else called,
        scaled=maybe(0.3),
    )
