"""Mechanisms that the package has as hand-written systems, restated by bodies and joints."""

from __future__ import annotations

from typing import Any

import holonome as hn


def four_bar() -> tuple[hn.Mechanism, dict, dict]:
    """`hn.mechanisms.four_bar()`: the mechanism, its start and its speed."""
    example = hn.mechanisms.four_bar()
    p, q, v = example.system.parameters, example.q0, example.v0
    m = hn.Mechanism("four-bar", gravity=(0, -p["gravity"]))
    bars = {}
    for name, length in (("crank", p["a"]), ("coupler", p["b"]), ("rocker", p["c"])):
        mass = p["density"] * length
        ends = {"near": (-length / 2, 0), "far": (length / 2, 0)}
        bars[name] = m.body(name, mass=mass, inertia=mass * length**2 / 12, points=ends)
    m.revolute("A", m.ground.at(0, 0), bars["crank"]["near"])
    m.revolute("B", bars["crank"]["far"], bars["coupler"]["near"])
    m.revolute("C", bars["coupler"]["far"], bars["rocker"]["far"])
    m.revolute("D", m.ground.at(p["d"], 0), bars["rocker"]["near"])
    start = {"A": q[2], "B": hn.near(q[5] - q[2]), "D": hn.near(q[8])}
    return m, start, {"A": v[2]}


def slider_crank_unequal() -> tuple[hn.Mechanism, dict, dict]:
    """`hn.mechanisms.slider_crank_unequal()`; the end of the second bar stays on the x-axis."""
    example = hn.mechanisms.slider_crank_unequal()
    p, q = example.system.parameters, example.q0
    m = hn.Mechanism("slider-crank", gravity=(0, -p["gravity"]))
    bars = []
    for k in "12":
        mass, length = p[f"m{k}"], p[f"length{k}"]
        ends = {"near": (-length / 2, 0), "far": (length / 2, 0)}
        bars.append(m.body(f"bar {k}", mass=mass, inertia=mass * length**2 / 12, points=ends))
    m.revolute("A", m.ground.at(0, 0), bars[0]["near"])
    m.revolute("B", bars[0]["far"], bars[1]["near"])
    m.point_on("C", m.ground.at(0, 0), bars[1]["far"], lambda x: x[1])
    return m, {"A": q[2], "B": hn.near(q[5] - q[2])}, {}


def andrews() -> tuple[hn.Mechanism, dict, dict]:
    """`hn.mechanisms.andrews()`: seven bodies, ten hinges, a spring and a motor."""
    example = hn.mechanisms.andrews()
    values, q = example.system.parameters, example.q0

    def p(name: str) -> float:
        return float(values[name])

    centers = {
        1: (p("ra"), 0),
        2: (-p("da"), 0),
        3: (p("sa"), p("sb")),
        4: (0, p("ea") - p("e")),
        5: (p("ta"), p("tb")),
        6: (p("zf") - p("fa"), 0),
        7: (p("ua"), p("ub")),
    }
    points: dict[int, dict[str, Any]] = {
        1: {"F": (p("rr"), 0)},
        2: {"E": (-p("d"), 0)},
        3: {"E": (0, -p("ss")), "D": (p("sd"), -p("sc"))},
        4: {"E": (0, -p("e"))},
        5: {"G": (p("zt"), 0)},
        6: {"E": (p("zf"), 0)},
        7: {"H": (0, -p("u"))},
    }
    m = hn.Mechanism("Andrews", gravity=(0, 0))
    K = {
        k: m.body(f"K{k}", p(f"m{k}"), p(f"i{k}"), center=centers[k], points={"pivot": (0, 0), **points[k]})
        for k in centers
    }
    A, B = m.ground.at(p("xa"), p("ya")), m.ground.at(p("xb"), p("yb"))
    m.revolute("O", m.ground.at(0, 0), K[1]["pivot"])
    m.revolute("F", K[1]["F"], K[2]["pivot"])
    m.revolute("B", B, K[3]["pivot"])
    m.revolute("G", K[5]["G"], K[4]["pivot"])
    m.revolute("A5", A, K[5]["pivot"])
    m.revolute("H", K[7]["H"], K[6]["pivot"])
    m.revolute("A7", A, K[7]["pivot"])
    for k in (3, 4, 6):
        m.revolute(f"E{k}", K[2]["E"], K[k]["E"])
    m.spring("spring", m.ground.at(p("xc"), p("yc")), K[3]["D"], stiffness=p("c0"), length=p("l0"))
    m.torque("motor", "O", p("mom"))
    # beta, theta, gamma, phi, delta, omega, epsilon are the angles of these joints
    start = dict(zip(("O", "F", "B", "G", "A5", "H", "A7"), q, strict=True))
    return m, {name: value if name == "F" else hn.near(value) for name, value in start.items()}, {}


ANGLES = {
    "four_bar": {"A": lambda q: q[2], "B": lambda q: q[5] - q[2], "D": lambda q: q[8]},
    "slider_crank_unequal": {"A": lambda q: q[2], "B": lambda q: q[5] - q[2]},
    "andrews": {name: (lambda q, k=k: q[k]) for k, name in enumerate(("O", "F", "B", "G", "A5", "H", "A7"))},
}
"""The angles of joints in the coordinates of the hand-written systems."""

MECHANISMS = {"four_bar": four_bar, "slider_crank_unequal": slider_crank_unequal, "andrews": andrews}
