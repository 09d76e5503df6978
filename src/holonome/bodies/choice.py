"""Which coordinates a mechanism has: those of joints or of bodies, whichever need fewer instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import casadi as ca
import numpy as np

from holonome.bodies.equations import Equations
from holonome.bodies.joint import Joint
from holonome.bodies.tree import Tree
from holonome.dynamics.emitted import factorization_cost

_SMALL_TREE, _LARGEST_TREE = 12, 60
"""Coordinates of joints up to which those of a tree without loops, and beyond which absolute ones are taken
without counting.
"""
_PREFERRED = 1.25
"""Joint coordinates are taken unless they need so many times the instructions of absolute ones."""
_OF_A_BODY, _OF_ROWS = 350, 0.8
"""Instructions that the equations of a body in space take at least, with those of its joints; and the share
of the multiplications in eliminating full rows that is left where rows are not full.
"""


def chosen(joint: Equations, absolute: Callable[[], Equations]) -> Equations:
    """Joint or absolute coordinates, whichever take fewer instructions; the second are made if that is not
    plain without them.
    """
    tree = joint.tree
    if not tree.closing and tree.size <= _SMALL_TREE:
        return joint
    if tree.size > _LARGEST_TREE:
        return absolute()
    if joint.cost <= _PREFERRED * _least_absolute_cost(tree):
        return joint
    return joint if joint.cost <= _PREFERRED * absolute().cost else absolute()


def of_the_best_tree(joints: Iterable[Joint], made: Callable[[Sequence[str]], Equations]) -> Equations:
    """In joint coordinates.  A body that hangs on one of several balls may be better off with coordinates
    of its own: its mass then does not couple those of its neighbours.
    """
    balls = [joint.name for joint in joints if joint.what == "spherical"]
    found = made(())
    if not set(balls) & set(found.tree.edges) or not found.tree.closing or found.tree.size > _LARGEST_TREE:
        return found
    other = made(balls)
    return other if other.cost < 0.9 * found.cost else found


def _least_absolute_cost(tree: Tree) -> float:
    """Instructions that absolute coordinates need at least; zero where this is not known."""
    bodies = {id(group): k for k, group in enumerate(g for g in tree.groups if not g.ground and g.rotates)}
    joints = {link.joint.name: link.joint for link in tree.links} | {j.name: j for j in tree.closing}
    if tree.groups[0].members[0][0].dimension == 2 or tree.amplitudes:
        return 0.0
    coupled = [{k} for k in bodies.values()]  # by the rows of unit quaternions, then by those of joints
    for joint in joints.values():
        freedom = sum(motion.freedom for motion in joint.motions or ())
        groups = [id(tree.group_of[body.name]) for body in joint.bodies]
        if joint.what != "free" and joint.motions is not None:
            coupled += [{bodies[group] for group in groups if group in bodies}] * (6 - freedom)
    if not coupled:  # points alone
        return 0.0
    rows = ca.sparsify(ca.DM(np.array([[float(bool(a & b)) for b in coupled] for a in coupled])))
    return _OF_A_BODY * len(bodies) + _OF_ROWS * factorization_cost(rows.sparsity())
