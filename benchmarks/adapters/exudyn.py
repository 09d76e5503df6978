"""Exudyn with its own bodies, joints, springs and loads; constant steps, whose number is the level.

Generalised-α on index 3 (spectral radius 0.9, its default), the trapezoidal rule on index 2, and on index 3
(generalised-α with spectral radius 1); generalised-α on index 2 it refuses. For smooth motion the spectral
radius is 0, which damps most, and Newmark's method on index 2 has γ = 1, β = 0.5625. Modified Newton, dense
matrices up to LARGEST_DENSE bodies and sparse ones beyond, no files: its fastest settings. The duplicated
constraint gets its setting for redundant ones, ignoreSingularJacobian with full pivoting. Its joints may
scale their equations otherwise than ours; the motion is the same. The time is that of SolveDynamic, which
starts from the initial values each time; assembly is free.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import exudyn as exu
import numpy as np
from exudyn import itemInterface as items

from harness.protocol import STEPS, CannotState, Code, Outcome, Problem, timed

FEW_STEPS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
LARGEST_DENSE = 10
RADIUS = 0.9
warnings.filterwarnings("ignore", category=DeprecationWarning)


def version() -> str:
    return exu.__version__


class Builder:
    """A planar multibody system; bodies are placed where they start."""

    def __init__(self) -> None:
        self.container = exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        self.ground = self.mbs.AddObject(items.ObjectGround())
        self._positions: list[float] = []
        self.bodies = 0

    def point(self, m: float, r, v, gravity: float) -> int:
        node = self.mbs.AddNode(items.NodePoint2D(referenceCoordinates=list(r), initialVelocities=list(v)))
        return self._body(self.mbs.AddObject(items.ObjectMassPoint2D(mass=m, nodeNumber=node)), r, gravity)

    def bar(self, m: float, J: float, q, v, gravity: float = 0.0) -> int:
        """A rigid body with q = (x, y, φ) of its centre of mass."""
        node = self.mbs.AddNode(
            items.NodeRigidBody2D(referenceCoordinates=list(q), initialVelocities=list(v))
        )
        return self._body(
            self.mbs.AddObject(items.ObjectRigidBody2D(mass=m, inertia=J, nodeNumber=node)), q, gravity
        )

    def _body(self, body: int, q, gravity: float) -> int:
        self._positions += list(q)
        self.bodies += 1
        if gravity:
            self.mbs.AddLoad(
                items.LoadMassProportional(
                    markerNumber=self.mbs.AddMarker(items.MarkerBodyMass(bodyNumber=body)),
                    loadVector=[0, -gravity, 0],
                )
            )
        return body

    def at(self, body: int, x: float = 0.0, y: float = 0.0, *, rigid: bool = True) -> int:
        kind = items.MarkerBodyRigid if rigid else items.MarkerBodyPosition
        return self.mbs.AddMarker(kind(bodyNumber=body, localPosition=[float(x), float(y), 0]))

    def hinge(self, first: int, second: int) -> None:
        self.mbs.AddObject(items.ObjectJointRevolute2D(markerNumbers=[first, second]))

    def state(self) -> np.ndarray:
        data = self.mbs.systemData
        return np.concatenate(
            [np.array(self._positions) + data.GetODE2Coordinates(), data.GetODE2Coordinates_t()]
        )


def _circle(problem: Problem, built: Builder, rods: int, gravity: float, m: float = 1.0) -> int:
    mass = built.point(m, problem.y0[:2], problem.y0[2:], gravity)
    for _ in range(rods):
        built.mbs.AddObject(
            items.ObjectConnectorDistance(
                markerNumbers=[built.at(built.ground, rigid=False), built.at(mass, rigid=False)], distance=1.0
            )
        )
    return mass


def _pendulum(problem: Problem, built: Builder) -> None:
    _circle(problem, built, 1, problem.p.gravity, problem.p.m)


def _duplicated(problem: Problem, built: Builder) -> None:
    _circle(problem, built, 2, 9.81)


def _spring(problem: Problem, built: Builder) -> None:
    mass = _circle(problem, built, 1, 1.0)
    ends = [built.at(built.ground, 0.0, -0.5, rigid=False), built.at(mass, rigid=False)]
    built.mbs.AddObject(
        items.ObjectConnectorSpringDamper(markerNumbers=ends, referenceLength=0.4, stiffness=problem.p.k)
    )


def _slider_crank(problem: Problem, built: Builder) -> None:
    p, q, v = problem.p, problem.y0[:6], problem.y0[6:]
    first = built.bar(p.m1, p.m1 * p.length1**2 / 12, q[:3], v[:3], p.gravity)
    second = built.bar(p.m2, p.m2 * p.length2**2 / 12, q[3:], v[3:], p.gravity)
    built.hinge(built.at(built.ground), built.at(first, -p.length1 / 2))
    built.hinge(built.at(first, p.length1 / 2), built.at(second, -p.length2 / 2))
    markers = [
        built.at(second, p.length2 / 2),
        built.at(built.ground),
    ]  # the normal of the guide belongs to the second marker
    built.mbs.AddObject(
        items.ObjectJointPrismatic2D(
            markerNumbers=markers, axisMarker0=[1, 0, 0], normalMarker1=[0, 1, 0], constrainRotation=False
        )
    )


def _four_bar(problem: Problem, built: Builder) -> None:
    p, q, v = problem.p, problem.y0[:9], problem.y0[9:]
    a, b, c = (
        built.bar(
            p.density * size, p.density * size**3 / 12, q[3 * i : 3 * i + 3], v[3 * i : 3 * i + 3], p.gravity
        )
        for i, size in enumerate((p.a, p.b, p.c))
    )
    built.hinge(built.at(built.ground), built.at(a, -p.a / 2))
    built.hinge(built.at(a, p.a / 2), built.at(b, -p.b / 2))
    built.hinge(built.at(b, p.b / 2), built.at(c, p.c / 2))
    built.hinge(built.at(c, -p.c / 2), built.at(built.ground, p.d))


def _chain(problem: Problem, built: Builder) -> None:
    p, n = problem.p, 3 * problem.links
    bar, m = p.length / problem.links, p.m / problem.links
    before, offset = built.ground, 0.0
    for i in range(problem.links):
        body = built.bar(
            m,
            m * bar**2 / 12,
            problem.y0[3 * i : 3 * i + 3],
            problem.y0[n + 3 * i : n + 3 * i + 3],
            p.gravity,
        )
        built.hinge(built.at(before, offset), built.at(body, -bar / 2))
        before, offset = body, bar / 2


def _bushing(problem: Problem, built: Builder) -> None:
    p, q, v = problem.p, problem.y0[3:6], problem.y0[9:12]
    body = built.bar(p.m2, p.J2, q, v, p.gravity)
    built.mbs.AddObject(
        items.ObjectConnectorDistance(
            markerNumbers=[built.at(built.ground, rigid=False), built.at(body, rigid=False)],
            distance=p.length,
        )
    )
    angle = built.mbs.AddMarker(items.MarkerNodeCoordinate(nodeNumber=0, coordinate=2))
    fixed = built.mbs.AddMarker(
        items.MarkerNodeCoordinate(nodeNumber=built.mbs.AddNode(items.NodePointGround()), coordinate=0)
    )
    built.mbs.AddObject(items.ObjectConnectorCoordinate(markerNumbers=[fixed, angle]))
    stiffness, damping = [p.stiffness[0] / p.eps, p.stiffness[1] / p.eps, 0], [p.damping[0], p.damping[1], 0]
    built.mbs.AddObject(
        items.ObjectConnectorCartesianSpringDamper(
            markerNumbers=[built.at(built.ground, *p.s1), built.at(body, *p.s2)],
            stiffness=stiffness,
            damping=damping,
        )
    )


def _bushing_state(state: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(3), state[:3], np.zeros(3), state[3:]])


def _andrews(problem: Problem, built: Builder) -> None:
    """Seven bodies in absolute coordinates; their frames have the angles β, β+θ, γ, φ+δ, δ, Ω+ε, ε. The start
    is at rest.
    """
    p = problem.p
    beta, theta, gamma, phi, delta, omega, epsilon = problem.y0[:7]
    A, B, C, O = (p.xa, p.ya), (p.xb, p.yb), (p.xc, p.yc), (0.0, 0.0)
    F, G, H = (p.rr, 0.0), (p.zt, 0.0), (0.0, -p.u)  # in the frames of K1, K5 and K7
    angles = [beta, beta + theta, gamma, phi + delta, delta, omega + epsilon, epsilon]
    # in each frame: the pivot where the body hangs, its centre, and E, seen from the pivot
    pivots = [O, _place(O, beta, F), B, _place(A, delta, G), A, _place(A, epsilon, H), A]
    centres = [
        (p.ra, 0.0),
        (-p.da, 0.0),
        (p.sa, p.sb),
        (0.0, -(p.e - p.ea)),
        (p.ta, p.tb),
        (p.zf - p.fa, 0.0),
        (p.ua, p.ub),
    ]
    joints = {1: (-p.d, 0.0), 2: (0.0, -p.ss), 3: (0.0, -p.e), 5: (p.zf, 0.0)}
    inertia = [
        (p.m1, p.i1),
        (p.m2, p.i2),
        (p.m3, p.i3),
        (p.m4, p.i4),
        (p.m5, p.i5),
        (p.m6, p.i6),
        (p.m7, p.i7),
    ]
    bodies = [
        built.bar(m, J, [*_place(pivot, angle, centre), angle], np.zeros(3))
        for (m, J), pivot, angle, centre in zip(inertia, pivots, angles, centres, strict=True)
    ]

    def on(k: int, point) -> int:
        """A point of body k, given as seen from its pivot."""
        return built.at(bodies[k], point[0] - centres[k][0], point[1] - centres[k][1])

    for k, place in ((0, O), (2, B), (4, A), (6, A)):
        built.hinge(built.at(built.ground, *place), on(k, O))
    for above, point, below in ((0, F, 1), (4, G, 3), (6, H, 5)):
        built.hinge(on(above, point), on(below, O))
    for k in (2, 3, 5):
        built.hinge(on(1, joints[1]), on(k, joints[k]))
    built.mbs.AddObject(
        items.ObjectConnectorSpringDamper(
            markerNumbers=[built.at(built.ground, *C), on(2, (p.sd, -p.sc))],
            referenceLength=p.l0,
            stiffness=p.c0,
        )
    )
    built.mbs.AddLoad(items.LoadTorqueVector(markerNumber=built.at(bodies[0]), loadVector=[0, 0, p.mom]))


def _andrews_state(state: np.ndarray) -> np.ndarray:
    def relative(angles: np.ndarray) -> np.ndarray:
        k1, k2, k3, k4, k5, k6, k7 = angles
        return np.array([k1, k2 - k1, k3, k4 - k5, k5, k6 - k7, k7])

    return np.concatenate([relative(state[2:21:3]), relative(state[23::3])])


def _place(pivot, angle: float, point) -> tuple[float, float]:
    c, s = np.cos(angle), np.sin(angle)
    return pivot[0] + c * point[0] - s * point[1], pivot[1] + s * point[0] + c * point[1]


def _same(state: np.ndarray) -> np.ndarray:
    return state


BUILD: dict[str, tuple[Callable[[Problem, Builder], None], Callable[[np.ndarray], np.ndarray]]] = {
    "pendulum": (_pendulum, _same),
    "duplicated": (_duplicated, _same),
    "spring": (_spring, _same),
    "slider_crank_unequal": (_slider_crank, _same),
    "slider_crank": (_slider_crank, _same),
    "four_bar": (_four_bar, _same),
    "chain": (_chain, _same),
    "two_body_bushing": (_bushing, _bushing_state),
    "andrews": (_andrews, _andrews_state),
}
REASONS = {
    "wheelset": "no contact of profiled wheels with rails and creep forces",
    "kepler": "no central force but as a user function in Python",
    "driven": "no spring to a point that moves in time but as a user function in Python",
}


def codes(problem: Problem) -> dict[str, Code]:
    if problem.name not in BUILD:
        raise CannotState(REASONS[problem.name])
    build, ours = BUILD[problem.name]
    built = Builder()
    build(problem, built)
    built.mbs.Assemble()
    smooth = problem.motion == "smooth"

    def code(kind: str, radius: float, newmark: bool = False) -> Code:
        def run(steps: float) -> bool:
            settings = exu.SimulationSettings()
            settings.solution.file.write = False
            settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = int(steps), problem.end
            settings.timeIntegration.minimumStepSize = 1e-4 * problem.end / steps
            alpha = settings.timeIntegration.generalizedAlpha
            alpha.spectralRadius, alpha.useIndex2Constraints, alpha.useNewmark = radius, newmark, newmark
            if newmark:
                alpha.newmarkGamma, alpha.newmarkBeta = 1.0, 0.5625
            if problem.name == "duplicated":
                settings.linearSolverType, settings.linearSolverSettings.ignoreSingularJacobian = (
                    exu.LinearSolverType.EigenDense,
                    True,
                )
            if built.bodies > LARGEST_DENSE:
                settings.linearSolverType = exu.LinearSolverType.EigenSparse
            return built.mbs.SolveDynamic(
                settings,
                solverType=getattr(exu.DynamicSolverType, kind),
                showHints=False,
                showCausingItems=False,
            )

        def solve(steps: float) -> Outcome:
            try:
                good, seconds = timed(lambda: run(steps))
            except (RuntimeError, ValueError) as error:
                return Outcome(
                    None,
                    0.0,
                    message=str(error).strip().split("\n")[0].split(" [Python file")[0]
                    or "the solver stopped",
                )
            state = ours(built.state())
            good = good and bool(np.all(np.isfinite(state)))
            return Outcome(
                state if good else None,
                seconds,
                int(steps),
                0,
                "" if good else "SolveDynamic returned False: Newton's method failed",
            )

        def states(steps: float, times) -> np.ndarray:
            found = []

            def keep(mbs, t):
                found.append(ours(built.state()))
                return True

            built.mbs.SetPreStepUserFunction(keep)
            try:
                run(steps)
            finally:
                built.mbs.SetPreStepUserFunction(0)
            return np.array(found)

        return Code(solve, states, levels=FEW_STEPS if smooth else STEPS, interpolates=False)

    trapezoidal = {
        "trapezoidal index 3": code("GeneralizedAlpha", 1.0),
        "trapezoidal index 2": code("TrapezoidalIndex2", 1.0),
    }
    if smooth:
        return {
            "generalised-α index 3, ρ = 0": code("GeneralizedAlpha", 0.0),
            "Newmark index 2, γ = 1": code("GeneralizedAlpha", 0.0, newmark=True),
        } | trapezoidal
    return {f"generalised-α index 3, ρ = {RADIUS:g}": code("GeneralizedAlpha", RADIUS)} | trapezoidal
