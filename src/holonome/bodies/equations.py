"""The equations of motion of a tree of bodies with loops:  M(q) v′ = f − Gᵀ λ,  g = 0,  h = 0.

With the velocities V_c of the centres of mass and ω of the bodies, in the axes of links, both linear in v,

    T = ½ Σ m |V_c|² + ½ ωᵀ J ω,      M = ∂²T/∂v²,
    f = −Σ (∂V_c/∂v)ᵀ m A_c + (∂ω/∂v)ᵀ (J α + ω × J ω) + forces,

where A_c and α are the accelerations at v′ = 0, less gravity (:mod:`holonome.bodies.kinematics`).  The
products with transposed Jacobians are single sweeps from the outermost links to the ground.

A centre of mass on the axis of its link does not move with it and is counted with the link above: otherwise
gravity would be turned into the axes of the link and back.  A unit quaternion e adds ½ μ (e · e′)² to T,
which vanishes on e · e = 1 and makes M regular; it changes the multiplier of that row alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from holonome.bodies.coupling import Coupling
from holonome.bodies.geometry import Frame, cross
from holonome.bodies.joint import BALL, SLIDE, TURN, Joint, Row, typical_length
from holonome.bodies.kinematics import Kinematics, winds
from holonome.bodies.load import Effort, Load, Scene, Spring, Wrench
from holonome.bodies.tree import Link, Tree, unused
from holonome.dynamics.emitted import elimination_cost
from holonome.equations.model import Model
from holonome.errors import ModelError
from holonome.locks import cached_property

if TYPE_CHECKING:
    from holonome.bodies.assembly import Assembly


@dataclass(frozen=True, eq=False)
class Symbols:
    """What the expressions of a mechanism are made of."""

    t: ca.SX
    q: ca.SX
    v: ca.SX
    p: ca.SX
    s: ca.SX
    lam: ca.SX

    @property
    def inputs(self) -> list[ca.SX]:
        """In the order in which a System gives them to its functions."""
        return [self.t, self.q, self.v, self.p, self.s, ca.SX(0, 1), self.lam]


@dataclass(eq=False)
class Constraints:
    """All rows, with their names, and the names of rows that vanish identically or follow from others."""

    left_out: frozenset[str] = frozenset()
    g: list[ca.SX] = field(default_factory=list)
    h: list[ca.SX] = field(default_factory=list)
    g_names: list[str] = field(default_factory=list)
    h_names: list[str] = field(default_factory=list)
    rows: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    kept: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)  # which of the owner's rows
    vanishing: list[str] = field(default_factory=list)
    implied: dict[str, ca.SX] = field(default_factory=dict)
    owner: dict[str, str] = field(default_factory=dict)  # of each row, by its name
    size: float = 1.0  # a length of the mechanism

    def add(
        self,
        name: str,
        position: Sequence[Row],
        velocity: Sequence[Row],
        constants: Sequence[float | None],
    ) -> None:
        """Enter the rows of a joint, but those that are constant and so hold whatever the coordinates are."""
        several = len(position) + len(velocity) > 1
        places: tuple[list[int], list[int]] = [], []
        kept: tuple[list[int], list[int]] = [], []
        for k, row in enumerate(position):
            label = unused(f"{name} {row.name}" if several else name, self.owner)
            self.owner[label] = name
            value, constant = row.value, constants[k]
            if constant is not None:
                _require_closed(name, constant, self.size)
                self.vanishing.append(label)
                continue
            if label in self.left_out:
                self.implied[label] = value
                continue
            places[0].append(len(self.g))
            kept[0].append(k)
            self.g.append(value)
            self.g_names.append(label)
        for k, row in enumerate(velocity):
            label = unused(f"{name} {row.name}" if several else name, self.owner)
            self.owner[label] = name
            if label in self.left_out:
                self.implied[label] = row.value
                continue
            places[1].append(len(self.h))
            kept[1].append(k)
            self.h.append(row.value)
            self.h_names.append(label)
        self.rows[name], self.kept[name] = places, kept


def _require_closed(name: str, gap: float, size: float) -> None:
    if abs(gap) > max(1e-9 * min(size, 1.0), 1e-14 * size):
        raise ModelError(
            f"{name}: this joint cannot close: its ends stay apart by {abs(gap):.3g} wherever the bodies are "
            "moved; look at the points and axes of the loop"
        )


_LARGEST_LOOKED_AT = 60
"""Coordinates up to which rows are looked at that vanish but for rounding errors of the geometry."""


class Equations:
    """The equations of a mechanism in one choice of coordinates."""

    def __init__(
        self,
        tree: Tree,
        gravity: ca.SX,
        loads: Sequence[Load],
        couplings: Sequence[Coupling],
        t: ca.SX,
        p: ca.SX,
        namespace: Any,
        wanted: Sequence[str],
        left_out: Sequence[str] = (),
    ) -> None:
        q, v = ca.SX.sym("q", tree.size), ca.SX.sym("v", tree.size)
        self.tree, self.loads, self.couplings, self.namespace = tree, loads, couplings, namespace
        self.joints = {joint.name: joint for joint in tree.closing}
        self.windings = {
            joint.name: [f"{joint.name} {angle}" for angle in winds(joint, tree)]
            for joint in tree.closing
            if joint.name in wanted and winds(joint, tree)
        }
        names = [name for angles in self.windings.values() for name in angles]
        s = ca.SX.sym("s", len(names))
        parts = dict(zip(self.windings, _split(s, list(map(len, self.windings.values()))), strict=True))
        self.kinematics = Kinematics(tree, q, v, gravity, parts)
        self.constraints = Constraints(frozenset(left_out), size=self._size())
        self._close(q, t)
        lam = ca.SX.sym("lam", len(self.constraints.g) + len(self.constraints.h))
        self.symbols = Symbols(t, q, v, p, s, lam)
        self.scene = Scene(self.kinematics, t, namespace, forces=self._transmitted)
        self._gravity = gravity

    @cached_property
    def efforts(self) -> dict[str, list[Effort]]:
        """What forces do, springs left out, by name."""
        return {load.name: load.efforts(self.scene) for load in self.loads if not isinstance(load, Spring)}

    @property
    def M(self) -> ca.SX:
        return self._inertia[0]

    @cached_property
    def f(self) -> ca.SX:
        """All forces but those of springs."""
        return self._inertia[1] + self._applied()

    def _close(self, q: ca.SX, t: ca.SX) -> None:
        """All rows: of unit quaternions, of joints that close loops, of drives and gears."""
        found: list[tuple[str, list[Row], list[Row]]] = []
        for link in self.tree.links:
            if link.motion.kind == BALL:
                e = q[link.first : link.first + 4]
                name = self.tree.names[link.first].rpartition(" ")[0]
                found.append((f"{name} |e|", [Row("", ca.dot(e, e) - 1)], []))
        for joint in self.tree.closing:
            ends = self.kinematics.ends(joint)
            found.append((joint.name, *_rows(joint, ends, ends)))
        for coupling in self.couplings:
            residual = coupling.residual(self.kinematics, t, self.namespace)
            found.append((coupling.name, [Row("", residual)], []))
        found = [
            (name, [Row(x, ca.simplify(value)) for x, value in position], v) for name, position, v in found
        ]
        constants = iter(self._constants([row.value for _, position, _ in found for row in position], q))
        for name, position, velocity in found:
            self.constraints.add(name, position, velocity, [next(constants) for _ in position])

    def _size(self) -> float:
        """A length that is typical of the mechanism, as far as no parameters decide on it."""
        joints = [link.joint for link in self.tree.links] + self.tree.closing + self.tree.fixed
        return typical_length(joints, lambda x: np.array(ca.DM(x)).ravel() if x.is_constant() else None)

    @cached_property
    def units(self) -> np.ndarray:
        """Typical changes of the coordinates: a length of the loops where something slides, else one."""
        found = np.ones(self.tree.size)
        for link in self.tree.links:
            if link.motion.kind == SLIDE and link.motion.of is None:
                found[link.first] = self.constraints.size
        return found

    def _constants(self, rows: Sequence[ca.SX], q: ca.SX) -> list[float | None]:
        """Values of rows that do not change with q, or by no more than rounding errors of the geometry."""
        found = [float(row) if row.is_constant() else None for row in rows]
        joined = any(link.joint.what != "free" for link in self.tree.links)
        if not joined or self.tree.size > _LARGEST_LOOKED_AT:
            return found
        own = set(map(str, ca.vertsplit(q)))
        of_q = [own.issuperset(map(str, ca.symvar(row))) for row in rows]
        asked = [k for k in range(len(rows)) if found[k] is None and of_q[k]]
        values = ca.vertcat(*[rows[k] for k in asked])
        function = ca.Function("rows", [q], [ca.densify(values), ca.densify(ca.jacobian(values, q))])
        random, limit = np.random.default_rng(5), 1e-13 * min(self.constraints.size, 1.0)
        places = [function(random.uniform(-1, 1, q.numel()) * self.units) for _ in range(2)]
        changes = np.max([np.abs(np.array(J) * self.units) for _, J in places], axis=(0, 2), initial=0.0)
        for k, value, change in zip(asked, np.array(places[0][0]).ravel(), changes, strict=True):
            found[k] = float(value) if change <= limit else None
        return found

    def multipliers(self, name: str) -> ca.SX:
        """The multipliers of all rows of a joint; zeros of those that are left out."""
        joint, ends = self.joints[name], self.kinematics.ends(self.joints[name])
        sizes = tuple(map(len, _rows(joint, ends, ends)))
        (position, velocity), (kept, kept_v) = self.constraints.rows[name], self.constraints.kept[name]
        found, lam, behind = ca.SX(sum(sizes), 1), self.symbols.lam, len(self.constraints.g)
        for k, place in zip(kept, position, strict=True):
            found[k] = lam[place]
        for k, place in zip(kept_v, velocity, strict=True):
            found[sizes[0] + k] = lam[behind + place]
        return found

    def row_wrenches(self, name: str) -> list[Wrench]:
        """What the rows of a joint do to its bodies, by virtual displacements of each."""
        joint, ends = self.joints[name], self.kinematics.ends(self.joints[name])
        lam, move = self.multipliers(name), ca.SX.sym("virtual displacement", 6)
        found = []
        for k, end in enumerate(ends):
            moved, quickened = list(ends), list(ends)
            moved[k] = end.moved(move[:3], move[3:])
            quickened[k] = end.quickened(move[:3], move[3:])
            rows = [row.value for part in _rows(joint, moved, quickened) for row in part]
            W = ca.substitute(ca.jacobian(ca.vertcat(*rows), move), move, ca.SX.zeros(6, 1))
            wrench = -W.T @ lam
            found.append(Wrench(joint.points[k].body, end.x, wrench[:3], wrench[3:]))
        return found

    def _transmitted(self, name: str) -> ca.SX:
        """The force on the last body of a joint that has rows."""
        return self.row_wrenches(name)[-1].force

    @cached_property
    def _inertia(self) -> tuple[ca.SX, ca.SX]:
        """M, and the part of f that inertia and gravity make."""
        v, q = self.symbols.v, self.symbols.q
        T, velocities, forces = ca.SX(0), [], []
        for group in self.tree.groups:
            if group.link < 0:
                continue
            mass, center, inertia = group.inertia()
            R = group.place.R
            place, link = group.place.x + R @ center, group.link
            J = R @ inertia @ R.T
            state = self.kinematics.state(link)
            T += ca.dot(state.w, J @ state.w) / 2
            velocities.append(state.w)
            forces.append(-(J @ state.alpha + cross(state.w, J @ state.w)))
            link, place = self._above(link, place)
            if link < 0:
                continue
            state = self.kinematics.state(link)
            V = state.V + cross(state.w, place)
            T += mass * ca.dot(V, V) / 2
            A = state.A + cross(state.alpha, place) + cross(state.w, cross(state.w, place))
            velocities.append(V)
            forces.append(-mass * A)
        for link in self.tree.links:
            if link.motion.kind == BALL:
                part = slice(link.first, link.first + 4)
                T += self._quaternion_mass(link) * ca.dot(q[part], v[part]) ** 2 / 2
        M = ca.hessian(T, v)[0]
        if not velocities:
            return M, ca.SX(v.numel(), 1)
        return M, ca.jtimes(ca.vertcat(*velocities), v, ca.vertcat(*forces), True)

    def _above(self, link: int, place: ca.SX) -> tuple[int, ca.SX]:
        """The outermost link with which a point really moves."""
        while link >= 0:
            this = self.tree.links[link]
            across = [k for k in range(3) if k != this.motion.axis]
            on_axis = this.motion.kind == TURN and all(place[k].is_zero() for k in across)
            if not (on_axis or (this.motion.kind == BALL and all(place[k].is_zero() for k in range(3)))):
                break
            link, place = this.parent, this.place.x + this.place.R @ place
        return link, place

    def _quaternion_mass(self, link: Link) -> ca.SX:
        here = [
            group for group in self.tree.groups if group.link >= 0 and self.tree.links[group.link] is link
        ]
        found = sum((4 / 3 * ca.trace(group.inertia()[2]) for group in here), ca.SX(0))
        if not any(joint.amplitudes for joint in (other.joint for other in self.tree.links)):
            return found
        for group in self.tree.groups:  # the frame of a flexible body has the inertia of its stations
            station = self.tree.links[group.link] if group.link >= 0 else link
            body = station.joint.points[0]
            if station.joint.amplitudes and self.tree.group_of[body.body.name] in here:
                found += group.inertia()[0] * ca.dot(body.position, body.position)
        return found

    def _applied(self) -> ca.SX:
        """Generalised forces of all loads but springs."""
        pairs = [effort for efforts in self.efforts.values() for effort in efforts]
        if not pairs:
            return ca.SX(self.tree.size, 1)
        velocities = ca.vertcat(*[pair.velocity for pair in pairs])
        return ca.jtimes(velocities, self.symbols.v, ca.vertcat(*[pair.force for pair in pairs]), True)

    @cached_property
    def V(self) -> ca.SX:
        """The energy of gravity."""
        V = ca.SX(0)
        for group in self.tree.groups:
            if group.link >= 0:
                mass, center, _ = group.inertia()
                frame = self.kinematics.state(group.link).frame
                V -= mass * ca.dot(self._gravity, frame.at(group.place.x + group.place.R @ center).x)
        return V

    @property
    def row_names(self) -> list[str]:
        return [*self.constraints.g_names, *self.constraints.h_names]

    @property
    def velocity_jacobian(self) -> ca.SX:
        """∂(g′, h)/∂v, the rows that velocities must satisfy."""
        symbols, constraints = self.symbols, self.constraints
        G = ca.jacobian(ca.vertcat(*constraints.g), symbols.q)
        return ca.vertcat(G, ca.jacobian(ca.vertcat(*constraints.h), symbols.v))

    @cached_property
    def cost(self) -> int:
        """Roughly the number of operations of one evaluation of the accelerations."""
        symbols, constraints = self.symbols, self.constraints
        model = Model(
            symbols.t,
            symbols.q,
            symbols.v,
            symbols.p,
            self.M,
            self.f,
            ca.vertcat(*constraints.g),
            ca.vertcat(*constraints.h),
        )
        parts = [model.M, model.f, model.C, model.gamma]
        function = ca.Function("cost", symbols.inputs, parts, {"cse": True})
        return function.n_instructions() + elimination_cost(model)

    def from_frames(self, assembly: Assembly, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The absolute coordinates and their rates, from a position of the tree of joints."""
        other, tree = assembly.equations.kinematics, self.tree
        hung = {link.joint.points[1].body for link in tree.links if link.joint.amplitudes is None}
        groups = [group for group in tree.groups if group.members[0][0] in hung]
        frames = [other.frame(group.members[0][0]).at(group.inertia()[1]) for group in groups]
        parts = [ca.vertcat(f.x, f.v, f.w, f.angle, ca.vec(f.R.T)) for f in frames]
        found_q, found_v = np.zeros(tree.size), np.zeros(tree.size)
        for name, places in tree.amplitudes.items():
            there = other.tree.amplitudes[name]
            found_q[places], found_v[places] = q[there], v[there]
        values = assembly.function(ca.horzcat(*parts))(q, v)[0].T if groups else []
        for group, (*motion, angle, R) in zip(
            groups, (np.split(row, [3, 6, 9, 10]) for row in values), strict=True
        ):
            body = group.members[0][0]
            places, dimension = tree.places[body.name], body.dimension
            for found, x in zip((found_q, found_v), motion[:2], strict=True):
                found[places[:dimension]] = x[:dimension]
            if dimension == 2:
                found_q[places[2:]], found_v[places[2:]] = angle, motion[2][2:]
            elif len(places) > 3:
                found_q[places[3:]], found_v[places[3:]] = _quaternion_and_rate(R.reshape(3, 3), motion[2])
        return found_q, found_v

    @property
    def springs(self) -> list[Spring]:
        return [load for load in self.loads if isinstance(load, Spring)]

    @property
    def winding_rates(self) -> ca.SX:
        """The rates of the angles that are followed over full turns."""
        rates = []
        for name in self.windings:
            joint = self.joints[name]
            values = joint.measured(*self.kinematics.ends(joint))
            angles = [v for v, c in zip(values, joint.coordinates, strict=True) if c.kind == "angle"]
            rates += [self.kinematics.rate(angle) for angle in angles]
        return ca.vertcat(*rates) if rates else ca.SX(0, 1)

    def wrenches(self) -> dict[str, list[Wrench]]:
        """What acts on bodies, by the names of forces, springs, couplings and joints with rows."""
        found = {load.name: load.wrenches(self.scene) for load in self.loads}
        found |= {name: self.row_wrenches(name) for name in self.joints}
        for coupling in self.couplings:
            places = self.constraints.rows[coupling.name][0]
            multiplier = self.symbols.lam[places[0]] if places else ca.SX(0)
            found[coupling.name] = coupling.wrenches(self.scene, multiplier)
        return found


def _rows(joint: Joint, frames: Sequence[Frame], quickened: Sequence[Frame]) -> tuple[list[Row], list[Row]]:
    """The rows of a joint, of positions and of velocities."""
    return joint.limited(joint.rows(*frames)), joint.limited(joint.velocity_rows(*quickened))


def _split(column: ca.SX, sizes: list[int]) -> list[ca.SX]:
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    return [column[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _quaternion_and_rate(R: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A unit quaternion of a rotation, and e′ = ½ Eᵀ ω for an angular velocity in the axes of the ground."""
    x, y, z, w0 = Rotation.from_matrix(R).as_quat(canonical=True)
    E = np.array([[-x, w0, z, -y], [-y, -z, w0, x], [-z, y, -x, w0]])
    return np.array([w0, x, y, z]), E.T @ (R.T @ w) / 2
