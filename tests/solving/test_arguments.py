"""Every argument of every public function refuses nonsense by an error that names it, or the nonsense is
legitimate and stands in the table below.
"""

import inspect
from fractions import Fraction

import numpy as np
import pytest

import holonome as hn


class Thing:
    """An object that is nothing in particular."""

    def __init__(self, *anything):
        pass

    def __repr__(self):
        return "<thing>"


BAD = {
    "text": "no",
    "digits": "01",
    "empty text": "",
    "bytes": b"12",
    "None": None,
    "nan": np.nan,
    "inf": np.inf,
    "-inf": -np.inf,
    "negative": -5,
    "zero": 0,
    "half": 2.5,
    "True": True,
    "complex": 1 + 2j,
    "huge": 10**30,
    "enormous": 10**400,
    "empty list": [],
    "empty array": np.zeros(0),
    "list of numbers": [1, 2],
    "list of text": ["a", "b"],
    "ragged": [[1.0, 2.0], [3.0]],
    "nested": [[[1.0]]],
    "array of nan": np.array([np.nan, 1.0]),
    "objects": np.array([Thing(), Thing()]),
    "wrong shape": np.ones((3, 4, 5)),
    "dict": {"k": "2"},
    "dict of numbers": {1: 2.0},
    "set": {1.0, 2.0},
    "object": Thing(),
    "class": Thing,
    "function": lambda *nonsense: None,
}
TRUTHS = {"True"}
NUMBERS = {"zero", "half", "negative", "huge"}
POSITIVE = {"half", "huge"}
NOT_FINITE = {"nan", "inf", "-inf"}
EMPTY = {"empty list", "empty array"}
TEXTS = {"text", "digits", "empty text"}
MUTABLE = EMPTY | {
    "list of numbers",
    "list of text",
    "ragged",
    "nested",
    "array of nan",
    "objects",
    "wrong shape",
    "dict",
    "dict of numbers",
    "set",
    "object",
}
FUNCTIONS = {"class", "function"}  # what is callable is tried out only when it is needed


def pendulum(**arguments) -> hn.System:
    return hn.System(
        **{
            "mass": np.eye(2),
            "force": [0.0, -9.81],
            "constraint": lambda q: q @ q - 1,
            "names": ["x", "y"],
        }
        | arguments
    )


PENDULUM = pendulum()
STATEFUL = hn.System(
    1.0,
    lambda s, w: s + w,
    n=1,
    states={"a": 0.0},
    rate=lambda s: -s,
    unknowns={"b": 1.0},
    equations=lambda w: w - 1,
)
SLIDING = hn.System(
    np.eye(2), lambda lam, v: np.array([0.0, -9.81]) - 0.1 * lam * v, lambda q: q[1], names=["x", "y"]
)
DRIVEN = hn.System(1.0, lambda p: -p.k, parameters={"k": 1.0}, n=1)
LINE = hn.Index2System(lambda x: -x, np.array([[0.0], [1.0]]), lambda x: x[1], n=2)
HALVES = hn.CoupledSystem(
    [hn.System(1.0, [0.0], names=["x"]), hn.System(1.0, [1.0], names=["y"])], lambda x, y: x - y
)
MECHANISM = hn.Mechanism()
MECHANISM.revolute("A", MECHANISM.ground.at(0, 0), MECHANISM.body("rod", 1.0, 1.0, center=(0.5, 0)))
START = {"system": PENDULUM, "t_span": (0, 0.1), "q0": [1.0, 0.0], "v0": [0.0, 0.0]}
SHORT = {"t_span": (0, 0.01), "q0": [0.0]}

# Function, arguments that work, and for each argument to try the bad values that are legitimate.
CALLS: dict[str, tuple] = {
    "solve": (
        hn.solve,
        START,
        {
            "system": set(),
            "t_span": {"list of numbers"},
            "q0": set(),
            "v0": {"None"},
            "start": {"None"},
            "speed": {"None"},
            "s0": {"None"},
            "w0": {"None"},
            "lam0": {"None"},
            "method": set(),
            "rtol": {"zero"},
            "atol": POSITIVE | {"None", "list of numbers"},
            "t_eval": {"None", *EMPTY},
            "dense_output": TRUTHS,
            "events": {"None", *EMPTY},
            "first_step": POSITIVE | {"None", "inf"},
            "max_step": POSITIVE | {"inf"},
            "step": POSITIVE | {"None"},
            "projection": TRUTHS | {"None"},
            "motion": set(),
            "parameters": {"None"},
            "inputs": {"None"},
            "repair": TRUTHS,
            "keep_steps": TRUTHS | {"None"},
            "max_steps": set(),
            "progress": TRUTHS | FUNCTIONS,
            "controllers": {"None", "empty list"},
        },
    ),
    "solve, by name": (
        hn.solve,
        {"system": MECHANISM, "t_span": (0, 0.1)},
        {
            "start": {"None"},
            "speed": {"None"},
            "v0": {"None"},
            "s0": {"None"},
            "q0": NUMBERS | {"None"},
        },
    ),
    "start": (
        lambda start, speed: hn.solve(MECHANISM, (0, 0.1), start={"A": start}, speed={"A": speed}),
        {"start": 0.1, "speed": 0.2},
        {"start": NUMBERS, "speed": NUMBERS},
    ),
    "near": (
        lambda start: hn.solve(MECHANISM, (0, 0.1), start={"A": hn.near(start)}),
        {"start": 0.1},
        {"start": NUMBERS},
    ),
    "Mechanism": (
        hn.Mechanism,
        {},
        {
            "name": TEXTS,
            "gravity": {"list of numbers"},
            "parameters": {"None"},
            "inputs": {"None"},
            "coordinates": set(),
        },
    ),
    "at": (
        PENDULUM.at,
        {"t": 0.0, "q": [1.0, 0.0]},
        {
            "t": NUMBERS | EMPTY | {"list of numbers"},
            "q": {"list of numbers"},
            "v": {"None", "list of numbers"},
            "s": {"None"} | EMPTY,
            "parameters": {"None"},
            "inputs": {"None"},
        },
    ),
    "body": (
        lambda **given: hn.Mechanism().body(**given),
        {"name": "rod", "mass": 1.0, "inertia": 1.0},
        {
            "name": {"text", "digits"},
            "mass": POSITIVE | {"zero"},
            "inertia": POSITIVE | {"zero"},
            "center": {"None", "list of numbers"},
            "points": {"None"},
            "shape": {"None"},
            "density": {"None"},
        },
    ),
    "solve, states": (
        hn.solve,
        {"system": STATEFUL, **SHORT},
        {"s0": NUMBERS | {"None"}, "w0": NUMBERS | {"None"}},
    ),
    "solve, multipliers": (
        hn.solve,
        {"system": SLIDING, "t_span": (0, 0.1), "q0": [0.0, 0.0]},
        {"lam0": NUMBERS | {"None"}},
    ),
    "solve, parameters": (
        lambda k: hn.solve(DRIVEN, **SHORT, parameters={"k": k}),
        {"k": 1.0},
        {"k": NUMBERS},
    ),
    "solve, index 2": (
        hn.solve,
        {"system": LINE, "t_span": (0, 0.1), "q0": [1.0, 0.0]},
        {
            "q0": set(),
            "v0": {"None"},
            "s0": {"None"},
            "w0": {"None"},
            "lam0": {"None"},
            "projection": {"None"},
            "motion": set(),
            "repair": set(),
            "keep_steps": TRUTHS | {"None"},
            "max_steps": set(),
            "progress": TRUTHS | FUNCTIONS,
            "parameters": {"None"},
            "dense_output": TRUTHS,
            "step": {"None"} | POSITIVE,
            "first_step": {"None", "inf"} | POSITIVE,
            "max_step": {"inf"} | POSITIVE,
        },
    ),
    "consistent": (
        hn.consistent,
        {"system": PENDULUM, "q0": [1.0, 0.0]},
        {
            "system": set(),
            "q0": set(),
            "v0": {"None"},
            "t0": NUMBERS,
            "s0": {"None"},
            "fixed": {"zero", *EMPTY},
            "metric": set(),
            "repair": TRUTHS,
        },
    ),
    "compare": (
        hn.compare,
        {**START, "methods": ["dopri5"], "rtols": [1e-3]},
        {
            "system": set(),
            "t_span": {"list of numbers"},
            "q0": set(),
            "v0": {"None"},
            "start": {"None"},
            "speed": {"None"},
            "methods": set(),
            "rtols": set(),
            "atol": POSITIVE | {"None", "list of numbers"},
            "reference": {"None"},
            "max_steps": set(),
            "progress": TRUTHS | FUNCTIONS,
            "repair": TRUTHS,
            "parameters": {"None"},
        },
    ),
    "solve_coupled": (
        hn.solve_coupled,
        {"coupled": HALVES, "t_span": (0, 0.1), "q0": [0.0, 0.0], "method": hn.LocalIteration(0.1)},
        {
            "coupled": set(),
            "t_span": {"list of numbers"},
            "q0": set(),
            "v0": {"None"},
            "method": set(),
            "t_eval": {"None", *EMPTY},
            "repair": TRUTHS,
            "progress": TRUTHS | FUNCTIONS,
        },
    ),
    "solve_bvp": (
        hn.solve_bvp,
        {"system": LINE, "boundary": lambda a, b: [a[0] - 1], "mesh": [0.0, 0.1]},
        {
            "system": set(),
            "boundary": set(),
            "mesh": {"list of numbers"},
            "guess": {"None"},
            "srm": {"None"},
            "tol": set(),
            "max_nodes": set(),
            "parameters": {"None"},
        },
    ),
    "System": (
        pendulum,
        {},
        {
            "mass": {"half", "huge", "zero", "negative", "list of numbers"},
            "force": {"list of numbers"},
            "constraint": {"None"},
            "velocity_constraint": {"None"},
            "elastic": {"None", "empty list"},
            "states": {"None"},
            "rate": {"None"},
            "unknowns": {"None"},
            "equations": {"None"},
            "invariant": {"None"},
            "inertial": {"None"},
            "potential": {"None", "nested"} | NUMBERS,
            "parameters": {"None"},
            "inputs": {"None"},
            "names": {"None", "list of text"},
            "n": {"None"},
            "constraint_names": {"None"},
            "derivatives": {"None"},
            "name": TEXTS,
            "drawing": {"None"},
            "contacts": {"None", "empty list"},
        },
    ),
    "System, states": (
        lambda **given: hn.System(**{"mass": 1.0, "force": [0.0], "rate": lambda s: -s} | given),
        {"states": {"a": 0.0}},
        {"states": set(), "rate": set()},
    ),
    "System, state": (
        lambda states: hn.System(1.0, [0.0], rate=lambda s: -s, states={"a": states}),
        {"states": 0.0},
        {"states": NUMBERS},
    ),
    "System, parameter": (
        lambda parameters: hn.System(1.0, [0.0], parameters={"k": parameters}),
        {"parameters": 0.0},
        {"parameters": NUMBERS | {"empty list", "empty array", "list of numbers", "nested", "wrong shape"}},
    ),
    "System, derivative": (
        lambda derivatives: pendulum(derivatives={"constraint_q": derivatives}),
        {"derivatives": lambda q: 2 * q[None]},
        {"derivatives": set()},
    ),
    "ODE": (
        hn.ODE,
        {"f": lambda x: -x, "names": ["a", "b"]},
        {
            "f": set(),
            "invariant": {"None"},
            "names": {"list of text"},
            "n": {"None"},
            "parameters": {"None"},
            "inputs": {"None"},
            "name": TEXTS,
        },
    ),
    "DAE": (
        hn.DAE,
        {"f": lambda x, dx: [dx[0] - x[1], x[0] - x[1]], "names": ["a", "b"]},
        {
            "f": set(),
            "names": {"list of text"},
            "n": {"None"},
            "parameters": {"None"},
            "name": TEXTS,
        },
    ),
    "Index2System": (
        hn.Index2System,
        {"f": lambda x: -x, "B": [0.0, 1.0], "g": lambda x: x[1], "names": ["a", "b"]},
        {
            "f": {"list of numbers"},
            "B": {"list of numbers"},
            "g": set(),
            "names": {"list of text"},
            "n": {"None"},
            "parameters": {"None"},
            "name": TEXTS,
        },
    ),
    "Index3System": (
        hn.Index3System,
        {"f": lambda x: -x, "B": [0.0, 1.0], "g": lambda x: x[1], "n": 2},
        {
            "names": {"None", "list of text"},
            "f": {"list of numbers"},
            "B": {"list of numbers"},
            "g": set(),
            "n": set(),
            "parameters": {"None"},
            "name": TEXTS,
        },
    ),
    "CoupledSystem": (
        hn.CoupledSystem,
        {"subsystems": list(HALVES.subsystems.values()), "coupling": lambda x, y: x - y},
        {
            "subsystems": set(),
            "coupling": set(),
            "parameters": {"None"},
            "constraint_names": {"None"},
            "name": TEXTS,
        },
    ),
    "BlackBox": (
        hn.BlackBox,
        {"solver": lambda t, q, v, force: (q, v), "n": 1},
        {"solver": FUNCTIONS, "n": set(), "name": TEXTS},
    ),
    "BlackBox, names": (
        hn.BlackBox,
        {"solver": lambda t, q, v, force: (q, v)},
        {"names": {"list of text"}},
    ),
    "Elastic": (
        hn.Elastic,
        {"deformation": lambda q: q, "stiffness": 1.0},
        {
            "deformation": FUNCTIONS,
            "stiffness": NUMBERS
            | FUNCTIONS
            | {"empty list", "empty array", "list of numbers", "nested", "wrong shape"},
            "damping": NUMBERS
            | FUNCTIONS
            | {"empty list", "empty array", "list of numbers", "nested", "wrong shape"},
        },
    ),
    "Event": (
        hn.Event,
        {"function": lambda q: q[0]},
        {
            "function": FUNCTIONS,
            "terminal": TRUTHS | {"None", "zero"},
            "direction": NUMBERS | {"inf", "-inf"},
            "action": FUNCTIONS | {"None"},
        },
    ),
    "Contact": (
        hn.Contact,
        {"gap": lambda q: q[0], "slip": lambda v: v[1]},
        {
            "gap": FUNCTIONS,
            "slip": FUNCTIONS | {"None"},
            "restitution": FUNCTIONS | {"zero"},
            "friction": FUNCTIONS | {"zero", "half", "huge"},
            "static_friction": FUNCTIONS | {"zero", "half", "huge", "None"},
            "hypothesis": set(),
            "name": TEXTS,
        },
    ),
    "Sampled": (
        hn.Sampled,
        {"law": lambda q: 0.0, "every": 0.1},
        {
            "law": FUNCTIONS,
            "every": POSITIVE,
            "delay": POSITIVE | {"zero"},
            "offset": POSITIVE | {"zero"},
            "inputs": TEXTS | EMPTY | {"None", "list of text"},  # names, known with the system
            "state": MUTABLE | FUNCTIONS | {"None"},
        },
    ),
    "Simulator": (
        hn.Simulator,
        {"system": PENDULUM, "q0": [1.0, 0.0], "v0": [0.0, 0.0]},
        {
            "system": set(),
            "q0": set(),
            "v0": {"None"},
            "start": {"None"},
            "speed": {"None"},
            "s0": {"None"},
            "w0": {"None"},
            "lam0": {"None"},
            "t0": NUMBERS,
            "method": set(),
            "rtol": {"zero"},
            "atol": POSITIVE | {"None", "list of numbers"},
            "first_step": POSITIVE | {"None", "inf"},
            "max_step": POSITIVE | {"inf"},
            "step": POSITIVE | {"None"},
            "projection": TRUTHS | {"None"},
            "events": {"None", *EMPTY},
            "parameters": {"None"},
            "inputs": {"None"},
            "repair": TRUTHS,
            "max_steps": set(),
        },
    ),
    "Drawing": (
        hn.Drawing,
        {"points": lambda q: {"a": (q[0], q[1])}},
        {
            "points": set(),
            **dict.fromkeys(("links", "springs", "bodies", "lines", "circles", "tracks", "arrows"), EMPTY),
            "symbols": EMPTY,
            **{field: EMPTY | {"list of text"} for field in ("ground", "sliders", "traces")},
            "camera": {"list of numbers"},
        },
    ),
    "Method": (
        hn.Method,
        {"formulation": hn.GGL(), "integrator": hn.BDF()},
        {"formulation": set(), "integrator": set()},
    ),
    "BDF": (
        hn.BDF,
        {"step": 0.1},
        {
            "max_order": set(),
            "step": POSITIVE | {"None"},
            "order": {"None"},
            "newton_tolerance": POSITIVE,
            "rate_floor": {"zero"},
        },
    ),
    "RungeKutta": (hn.RungeKutta, {}, {"name": set(), "step": POSITIVE | {"None"}}),
    "Radau": (
        hn.Radau,
        {},
        {"order": set(), "step": POSITIVE | {"None"}, "newton_tolerance": POSITIVE | {"None"}},
    ),
    "Rattle": (hn.Rattle, {"step": 0.1}, {"step": POSITIVE | {"None"}, "order": set()}),
    "GeneralizedAlpha": (hn.GeneralizedAlpha, {}, {"rho_inf": {"zero"}, "step": POSITIVE | {"None"}}),
    "Taylor": (hn.Taylor, {}, {"order": {"None"}, "step": POSITIVE | {"None"}}),
    "equilibrium": (
        hn.equilibrium,
        {"system": PENDULUM, "guess": [0.0, -1.0]},
        {
            "system": set(),
            "guess": {"list of numbers"},
            "start": {"None"},
            "speed": {"None"},
            "free": EMPTY,
            "fixed": EMPTY,
            "t": NUMBERS,
            "parameters": {"None"},
            "inputs": {"None"},
        },
    ),
    "linearize": (
        hn.linearize,
        {"system": PENDULUM, "state": [0.0, -1.0]},
        {
            "system": set(),
            "state": set(),
            "start": {"None"},
            "inputs": EMPTY | {"None"},
            "outputs": {"None", "empty list"},
        },
    ),
    "kinematics": (
        hn.kinematics,
        {"system": MECHANISM, "drive": "A", "values": [0.1, 0.2]},
        {
            "system": set(),
            "drive": set(),
            "values": {"list of numbers"},
            "t": {"None", "list of numbers"},
            "rate": {"None", "list of numbers", *NUMBERS},
            "acceleration": {"None", "list of numbers", *NUMBERS},
            "guess": NUMBERS | {"None"},
            "start": {"None"},
            "parameters": {"None"},
            "inputs": {"None"},
        },
    ),
    "workspace": (
        hn.workspace,
        {"system": MECHANISM, "drives": {"A": [0.1, 0.2]}},
        {
            "system": set(),
            "drives": set(),
            "guess": NUMBERS | {"None"},
            "start": {"None"},
            "parameters": {"None"},
            "inputs": {"None"},
        },
    ),
    "ensemble": (
        lambda system, t_span, q0, over, **given: hn.ensemble(system, t_span, q0, over=over, **given).run(),
        {"system": DRIVEN, "t_span": (0, 0.1), "q0": [1.0], "over": {"k": [1.0, 2.0]}},
        {
            "system": set(),
            "t_span": {"list of numbers"},
            "q0": NUMBERS | NOT_FINITE,  # members that fail
            "v0": NUMBERS | NOT_FINITE | {"None"},
            "over": set(),
            "start": {"None"},
            "speed": {"None"},
            "s0": {"None"},
            "t_eval": {"None"},
            "keep": {"None"},
            "until": EMPTY | {"None"},
            "reduce": TRUTHS | {"None"},
            "members": {"None"},
            "seed": {"zero"},
            "method": set(),
            "rtol": {"zero"},
            "atol": POSITIVE | {"None", "list of numbers"},
            "first_step": POSITIVE | {"None", "inf"},
            "max_step": POSITIVE | {"inf"},
            "max_steps": set(),
            "parameters": {"None"},
            "inputs": {"None"},
            "repair": TRUTHS,
            "chunk": {"None"},
            "device": set(),
            "threads": {"None"},
        },
    ),
    "ensemble, store": (
        lambda store: hn.ensemble(DRIVEN, (0, 0.1), [1.0], over={"k": [1.0]}, store=store),
        {"store": "study.zarr"},
        {"store": TEXTS | {"None"}},
    ),
    "SRM": (
        hn.SRM,
        {},
        {
            "eps": POSITIVE | {"None"},
            "iterations": {"None"},
            "E": FUNCTIONS,
            "variant": set(),
            "alpha": {"None", "list of numbers", "set"},
            "y0": NUMBERS | {"list of numbers", *EMPTY},
            "post_stabilization": {"zero"},
        },
    ),
    "UnderlyingODE": (hn.UnderlyingODE, {}, {"projection": TRUTHS}),
    "Index1": (
        hn.Index1,
        {},
        {"alpha": NUMBERS | {"None"}, "beta": POSITIVE | {"zero", "None"}, "error_test": set()},
    ),
    "Baumgarte": (
        hn.Baumgarte,
        {},
        {"alpha": POSITIVE | {"zero", "None"}, "beta": POSITIVE | {"zero", "None"}, "error_test": set()},
    ),
    "Index2": (hn.Index2, {}, {"error_test": set()}),
    "Index3": (hn.Index3, {}, {"error_test": set()}),
    "GGL": (hn.GGL, {}, {"error_test": set(), "newton_test": set(), "predict_multipliers": TRUTHS}),
    "Compliant": (hn.Compliant, {}, {"error_test": set(), "newton_test": set(), "slack": {"zero"}}),
    "CoordinateProjection": (
        hn.CoordinateProjection,
        {},
        {"formulation": set(), "metric": set(), "relaxed": TRUTHS, "projects_error": TRUTHS},
    ),
    "CoordinateSplit": (
        hn.CoordinateSplit,
        {},
        {"iteration": set(), "refresh": set(), "error_test": set(), "mean": set()},
    ),
    "LocalIteration, solvers": (
        lambda **given: hn.solve_coupled(HALVES, (0, 0.1), [0, 0], method=hn.LocalIteration(0.1, **given)),
        {},
        {"solvers": set(), "update": {"None"}},
    ),
    "LocalIteration": (
        hn.LocalIteration,
        {"window": 0.1},
        {
            "window": POSITIVE,
            "substeps": set(),
            "nodes": {"None"},
            "rtol": POSITIVE | {"zero"},
            "atol": POSITIVE | {"zero"},
            "max_iterations": set(),
            "iterations": {"None"},
            "projection": TRUTHS,
            "threads": TRUTHS,
            "check": TRUTHS,
        },
    ),
}
CASES = [(call, argument) for call, (_, _, tried) in CALLS.items() for argument in tried]
RESULTS = {
    "Animation",
    "Branch",
    "BranchPoint",
    "Comparison",
    "Ensemble",
    "Equilibrium",
    "History",
    "Kinematics",
    "Linearization",
    "Mode",
    "Modes",
    "Residual",
    "Response",
    "Snapshot",
    "Stairs",
    "Start",
    "State",
    "Tableau",
    "Trial",
    "WindowSolver",
    "Workspace",
    "animate",
    "from_sympy",
    "near",
}


@pytest.mark.parametrize(("call", "argument"), CASES)
def test_nonsense_is_refused_by_name(call, argument):
    function, working, legitimate = CALLS[call]
    wrong = []
    for name, value in BAD.items():
        try:
            function(**{**working, argument: value})
        except (ValueError, TypeError, hn.HolonomeError) as error:
            if name in legitimate[argument]:
                wrong.append(f"{name}: refused, {error}")
            elif argument not in str(error):
                wrong.append(f"{name}: {type(error).__name__}: {error}")
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}")
        else:
            if name not in legitimate[argument]:
                wrong.append(f"{name}: accepted")
    assert not wrong, "\n".join(wrong)


def test_no_argument_is_forgotten():
    """Except those of results, which the package makes itself, and of what reads foreign objects."""
    tried = {(call.partition(",")[0], argument) for call, argument in CASES}
    forgotten = [
        (name, argument)
        for name in hn.__all__
        if callable(thing := getattr(hn, name)) and name not in RESULTS and not name.endswith("Solution")
        if not (inspect.isclass(thing) and issubclass(thing, Exception))
        for argument in inspect.signature(thing).parameters
        if (name, argument) not in tried and argument != "options"
    ]
    assert not forgotten


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pendulum(n=2.5), "n: 2.5; give a whole number"),
        (lambda: hn.solve(**START, projection="no"), "projection: 'no'; give True or False, or None"),
        (lambda: hn.solve(PENDULUM, "01", [1, 0]), "t_span: '01'; give"),
        (lambda: hn.solve(DRIVEN, (0, 1), [0], parameters={"k": "2"}), r"parameters\['k'\]: '2'; give"),
        (lambda: hn.solve(**START, atol=0), "atol: 0; give a positive number"),
        (lambda: hn.solve(**START, max_steps=10**30), "max_steps: 10+; give a positive whole number"),
        (lambda: pendulum(mass=[[1.0, 2.0], [3.0]]), r"mass: \[\[1.0, 2.0\], \[3.0\]\]; give a finite real"),
        (lambda: pendulum(parameters=[1, 2]), r"parameters: \[1, 2\]; give a dict"),
    ],
)
def test_messages_say_what_to_give(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call()


def test_numbers_of_every_kind_are_welcome():
    numbers = {"rtol": Fraction(1, 10**6), "atol": np.array(1e-9), "max_step": np.float32(0.5)}
    flags = {"repair": np.True_, "max_steps": np.int64(1000), "dense_output": np.bool_(False)}
    assert hn.solve(PENDULUM, [0, Fraction(1, 10)], (1, Fraction(0)), **numbers, **flags).success


MASKED = np.ma.masked_array([1.0, 2.0], mask=[False, True])


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("q0", lambda system: hn.solve(system, (0, 1), MASKED)),
        ("t_eval", lambda system: hn.solve(system, (0, 3), [1.0, 2.0], t_eval=MASKED)),
        ("mass", lambda system: hn.System(MASKED, lambda q: -q)),
        ("force", lambda system: hn.System(np.ones(2), lambda q: MASKED)),
        ("force", lambda system: hn.System(np.ones(2), MASKED)),
        ("parameters", lambda system: hn.System(np.ones(2), lambda q: -q, parameters={"k": MASKED})),
        ("parameters", lambda system: hn.solve(system, (0, 1), [1.0, 2.0], parameters={"k": MASKED})),
    ],
)
def test_masked_entries_are_no_numbers(argument, call):
    system = hn.System(np.ones(2), lambda q, p: -p.k * q, parameters={"k": np.ones(2)})
    with pytest.raises((ValueError, TypeError), match=argument):
        call(system)
