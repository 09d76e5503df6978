"""From bodies and joints to a tree of elementary links, and the joints that close loops.

A link is a frame that slides or turns in the frame of its parent.  Bodies that are fixed to each other are
one *group*, and each group sits in the frame of a link.  With joint coordinates the links are those of the
joints of a spanning tree; with absolute coordinates every group hangs on the ground by slides at its centre
of mass and a turn or a ball.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

import casadi as ca

from holonome.bodies.body import Body, Point, combined
from holonome.bodies.geometry import IDENTITY, ZERO, constant
from holonome.bodies.joint import SLIDE, Joint, LowerPair, Motion
from holonome.errors import ModelError


@dataclass(frozen=True, eq=False)
class Placement:
    """Where axes lie in other axes: x_outer = x + R x_inner."""

    R: ca.SX = IDENTITY
    x: ca.SX = ZERO

    def __matmul__(self, other: Placement) -> Placement:
        if other.R is IDENTITY and other.x is ZERO:
            return self
        R = other.R if self.R is IDENTITY else self.R if other.R is IDENTITY else self.R @ other.R
        return Placement(R, self.x + self.R @ other.x)

    @property
    def inverse(self) -> Placement:
        return Placement(self.R.T, -self.R.T @ self.x) if self is not HERE else self


HERE = Placement()


def of_end(joint: Joint, k: int) -> Placement:
    """Where the joint's axes at its k-th point lie in those of the body."""
    point, turn = joint.points[k], joint.turn(k)
    R = constant(point.turn @ turn)
    return Placement(IDENTITY if ca.is_equal(R, IDENTITY, 1) else R, point.position)


@dataclass(eq=False)
class Group:
    """Bodies that are fixed to each other, with their places in the axes of the first."""

    members: list[tuple[Body, Placement]]
    link: int = -1
    place: Placement = HERE  # in the frame of its link
    depth: int = 0

    @property
    def name(self) -> str:
        return self.members[0][0].name

    @property
    def ground(self) -> bool:
        return any(body.ground for body, _ in self.members)

    @property
    def rotates(self) -> bool:
        return any(body.rotates for body, _ in self.members)

    def inertia(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Mass, centre of mass and inertia about it, in the axes of the group."""
        return combined([(body, place.R, place.x) for body, place in self.members if not body.ground])


@dataclass(frozen=True, eq=False)
class Link:
    """An elementary motion in the frame of a parent, −1 for the ground.

    Attributes
    ----------
    parent
        The number of the link in whose frame it moves.
    place
        Where its axes lie there before it moves.
    motion
        How it moves.
    first
        The number of its first coordinate.
    joint
        The joint that it belongs to.
    """

    parent: int
    place: Placement
    motion: Motion
    first: int
    joint: Joint


@dataclass(eq=False)
class Tree:
    """The links, the groups of bodies in their frames, and the joints whose rows are constraints."""

    links: list[Link] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)  # names, to have none twice
    groups: list[Group] = field(default_factory=list)
    group_of: dict[str, Group] = field(default_factory=dict)
    edges: dict[str, bool] = field(default_factory=dict)  # joints of the tree: whether walked from b to a
    places: dict[str, list[int]] = field(default_factory=dict)  # coordinates of a joint of the tree
    closing: list[Joint] = field(default_factory=list)
    fixed: list[Joint] = field(default_factory=list)  # joints that make groups
    amplitudes: dict[str, list[int]] = field(default_factory=dict)  # coordinates of a flexible body

    @property
    def size(self) -> int:
        return len(self.names)

    def add(self, joint: Joint, parent: Group, child: Group, walked_back: bool, prefix: str) -> None:
        """Hang a group on another by a joint."""
        begin, end = (1, 0) if walked_back else (0, 1)
        link, place = parent.link, parent.place @ self._end(joint, begin)
        motions: Sequence[Motion] = joint.motions or ()
        if walked_back:
            motions = [motion.reversed for motion in reversed(motions)]
        places: list[list[int]] = []
        for motion in motions:
            places.append(self._numbers(joint, motion))
            self.links.append(Link(link, place, motion, places[-1][0], joint))
            link, place = len(self.links) - 1, HERE
        if walked_back:
            places.reverse()
        numbers = list(dict.fromkeys(number for part in places for number in part))
        prefix = joint.amplitudes or prefix
        several = len(joint.coordinates) > 1
        for number, coordinate in zip(numbers, joint.coordinates, strict=True):
            if not self.names[number]:
                self.names[number] = unused(f"{prefix} {coordinate.name}" if several else prefix, self.taken)
                self.taken.add(self.names[number])
        child.link, child.place = link, place @ self._end(joint, end).inverse
        child.depth = parent.depth + 1
        self.edges[joint.name], self.places[joint.name] = walked_back, numbers

    def _numbers(self, joint: Joint, motion: Motion) -> list[int]:
        """The numbers of a motion's coordinates: new ones, but for amplitudes that are there already."""
        if joint.amplitudes in self.amplitudes:
            return self.amplitudes[joint.amplitudes]
        found = list(range(self.size, self.size + motion.size))
        self.names += [""] * motion.size
        if joint.amplitudes is not None:
            self.amplitudes[joint.amplitudes] = found
        return found

    def connections(self, but: str) -> list[tuple[Body, Body]]:
        """Pairs of bodies that joints of the tree connect, but for one."""
        joints = {link.joint.name: link.joint for link in self.links} | {j.name: j for j in self.fixed}
        return [(j.bodies[0], j.bodies[-1]) for name, j in joints.items() if name != but]

    def _end(self, joint: Joint, k: int) -> Placement:
        """Where the joint's axes lie in those of the group."""
        body = joint.points[k].body
        return self.place_in_group(body) @ of_end(joint, k)

    def place_in_group(self, body: Body) -> Placement:
        return next(place for member, place in self.group_of[body.name].members if member is body)


def unused(name: str, taken: Container[str]) -> str:
    """A name that differs from others, such as that of the x of a joint P from that of a joint "P x"."""
    found, k = name, 1
    while found in taken:
        k += 1
        found = f"{name} ({k})"
    return found


def grown(
    bodies: Iterable[Body],
    joints: Sequence[Joint],
    absolute: bool,
    wanted: Sequence[str] = (),
    loops: Sequence[str] = (),
) -> Tree:
    """The tree of a mechanism.

    Parameters
    ----------
    bodies
        All bodies, the ground first.
    absolute
        Whether bodies have coordinates of their own.
    wanted
        Names of joints that had best be in the tree, because their angles are asked for.
    loops
        Names of joints that must not be in the tree, because their multipliers are asked for.
    """
    tree = Tree()
    joined = _fixed_together(tree, list(bodies), joints)
    free = [tree.group_of[joint.bodies[1].name] for joint in joined if joint.what == "free"]
    rest = [joint for joint in joined if joint.what != "free"]
    _require_held(tree, rest, free)
    if absolute:
        carried = [tree.group_of[joint.bodies[1].name] for joint in rest if joint.amplitudes is not None]
        own = [group for group in tree.groups if not group.ground and group not in carried]
        _hang_on_ground(tree, own)
        _add_stations(tree, rest, [group for group in tree.groups if group.ground or group in own])
        tree.closing = [joint for joint in rest if joint.name not in tree.edges]
        return tree
    able = [joint for joint in rest if joint.motions is not None and joint.name not in loops]
    frontier = _Frontier(tree, able, wanted)
    for group in tree.groups:
        if group.ground:
            frontier.reach(group)
    while len(frontier.reached) < len(tree.groups):
        edge = frontier.next()
        if edge is None:
            loose = [group for group in tree.groups if id(group) not in frontier.reached]
            loose.sort(key=lambda group: group not in free)
            _hang_on_ground(tree, loose[:1])
            frontier.reach(loose[0])
            continue
        joint, parent, child, walked_back = edge
        tree.add(joint, parent, child, walked_back, joint.name)
        frontier.reach(child)
    tree.closing = [joint for joint in rest if joint.name not in tree.edges]
    return tree


def _fixed_together(tree: Tree, bodies: list[Body], joints: Sequence[Joint]) -> list[Joint]:
    """Make groups of bodies; the joints that are left."""
    groups = [Group([(body, HERE)]) for body in bodies]
    tree.group_of = {body.name: group for body, group in zip(bodies, groups, strict=True)}
    rest = []
    for joint in joints:
        if (
            joint.what != "fixed"
            or tree.group_of[joint.bodies[0].name] is tree.group_of[joint.bodies[1].name]
        ):
            rest.append(joint)
            continue
        first, second = (tree.group_of[body.name] for body in joint.bodies)
        between = tree._end(joint, 0) @ tree._end(joint, 1).inverse
        if second.ground:
            first, second, between = second, first, between.inverse
        for body, place in second.members:
            first.members.append((body, between @ place))
            tree.group_of[body.name] = first
        groups.remove(second)
        tree.fixed.append(joint)
    tree.groups = groups
    return rest


def _add_stations(tree: Tree, joints: Sequence[Joint], reached: list[Group]) -> None:
    """Hang the stations of flexible bodies on their frames."""
    waiting, reached = [joint for joint in joints if joint.amplitudes is not None], list(reached)
    while waiting:
        able = [joint for joint in waiting if tree.group_of[joint.bodies[0].name] in reached]
        if not able:
            first = tree.group_of[waiting[0].bodies[0].name]
            _hang_on_ground(tree, [first])
            reached.append(first)
            continue
        for joint in able:
            frame, station = (tree.group_of[body.name] for body in joint.bodies)
            if station not in reached and not station.ground:
                tree.add(joint, frame, station, False, joint.name)
                reached.append(station)
        waiting = [joint for joint in waiting if joint not in able]


class _Frontier:
    """Joints that reach another group: those with the fewest freedoms come first, of these the nearest to the
    ground.
    """

    def __init__(self, tree: Tree, joints: Sequence[Joint], wanted: Sequence[str]) -> None:
        self.tree, self.joints, self.wanted = tree, joints, set(wanted)
        self.heap: list[tuple[bool, int, int, int]] = []
        self.reached: set[int] = set()
        self.at: dict[int, list[int]] = {}
        for k, joint in enumerate(joints):
            for body in joint.bodies:
                self.at.setdefault(id(tree.group_of[body.name]), []).append(k)

    def reach(self, group: Group) -> None:
        self.reached.add(id(group))
        for k in self.at.get(id(group), ()):
            joint = self.joints[k]
            freedom = sum(motion.freedom for motion in joint.motions or ())
            heapq.heappush(self.heap, (joint.name not in self.wanted, freedom, group.depth, k))

    def next(self) -> tuple[Joint, Group, Group, bool] | None:
        """The joint, where it begins, what it reaches, and whether it is walked from b to a."""
        while self.heap:
            joint = self.joints[heapq.heappop(self.heap)[-1]]
            a, b = (self.tree.group_of[body.name] for body in joint.bodies)
            if (id(a) in self.reached) == (id(b) in self.reached):
                continue
            parent, child = (a, b) if id(a) in self.reached else (b, a)
            if child.rotates:
                return joint, parent, child, child is a
        return None


def _require_held(tree: Tree, joints: Sequence[Joint], free: Sequence[Group]) -> None:
    """Every body must be connected with the ground or with a body that is free on purpose."""
    neighbours: dict[int, list[Group]] = {}
    for joint in joints:
        ends = [tree.group_of[body.name] for body in joint.bodies]
        for end in ends:
            neighbours.setdefault(id(end), []).extend(ends)
    waiting = [group for group in tree.groups if group.ground or group in free]
    held = set(map(id, waiting))
    while waiting:
        for group in neighbours.get(id(waiting.pop()), ()):
            if id(group) not in held:
                held.add(id(group))
                waiting.append(group)
    loose = next((group for group in tree.groups if id(group) not in held), None)
    if loose is not None:
        raise ModelError(
            f"{loose.name}: this body hangs on nothing; connect it with the ground by a joint, or say that "
            f"it is free: m.free({loose.name!r})"
        )


def _hang_on_ground(tree: Tree, groups: Sequence[Group]) -> None:
    """Give groups coordinates of their own: of the centre of mass, and of the rotation."""
    ground = next(group for group in tree.groups if group.ground)
    base = next(body for body, _ in ground.members if body.ground)
    for group in groups:
        body = group.members[0][0]
        center = Point(body, "centre of mass", group.inertia()[1])
        joint = LowerPair(f"{body.name}", "free", base.points["origin"], center)
        if not group.rotates:
            joint.motions = tuple(motion for motion in joint.motions or () if motion.kind == SLIDE)
            joint.coordinates = joint.coordinates[: len(joint.motions)]
        tree.add(joint, ground, group, False, body.name)
