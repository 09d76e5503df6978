"""Bushings: an elastic and damping force between two frames, one fixed to each of two bodies (Yen & Petzold
1996, section 5.2).

Body i has its origin in r_i and the rotation matrix A_i from its axes to the global ones. The frame of the
bushing sits on it at s_i′ and is turned by the constant B_i; likewise j. With

    d_ij = r_j + A_j s_j′ − r_i − A_i s_i′                                   (5.2)
    A_ij = (A_i B_i)ᵀ A_j B_j,   Θ = (ψ, θ, φ),
    ψ = −A_ij(2,3),  θ = A_ij(1,3),  φ = arctan(A_ij(2,1)/A_ij(2,2))

the *deformation* is c = ((A_i B_i)ᵀ d_ij, Θ), displacement and angles as frame i sees them, and

    f_ij = A_i B_i (K^f c_d + C^f ċ_d),     τ_ij = A_i B_i (K^τ Θ + C^τ (A_i B_i)ᵀ(ω_j − ω_i))

pulls body i towards body j. Body j gets −f_ij and −τ_ij.

All functions are plain NumPy and can be used in the functions of a `System`; the deformations alone describe
an elastic element.

Two things that the paper leaves open are chosen such that no momentum, angular momentum or energy appears
from nowhere. Both forces act in the same point, the attachment to body j. And ċ_d is the rate of the
components in frame i, (A_i B_i)ᵀ(ḋ_ij − ω_i × d_ij), so that a common rotation of the bodies is not damped;
the paper has (A_i B_i)ᵀ ḋ_ij, which is the same if body i does not turn. φ is taken in its quadrant. ψ and θ
are sines: the angles should stay small about those two axes.

References
----------
J. Yen and L. Petzold, An efficient Newton-type iteration for the numerical solution of highly oscillatory
constrained multibody dynamic systems, SIAM J. Sci. Comput. 19 (1998) 1513-1534.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
"""What NumPy takes as an array, or traced values of a `System`."""


def deformation_2d(
    qi: Array, qj: Array, si: Array, sj: Array, angle_i: float = 0.0, angle_j: float = 0.0
) -> Array:
    """Displacement and relative angle of a planar bushing, (d_x, d_y, φ) in the frame on body i.

    Parameters
    ----------
    qi, qj : (3,)
        The bodies: position of the origin and angle, x, y, θ.
    si, sj : (2,)
        Where the bushing is attached, in the axes of each body.
    angle_i, angle_j : float
        By how much the bushing's frames are turned against the axes of the bodies.

    Examples
    --------
    >>> import holonome as hn
    >>> hn.bushing.deformation_2d([0, 0, 0], [1, 0.1, 0.2], [1, 0], [0, 0])
    array([0. , 0.1, 0.2])
    """
    d = _attachment(qj, sj) - _attachment(qi, si)  # (5.2)
    return np.array([*_turned(d, -(qi[2] + angle_i)), qj[2] + angle_j - qi[2] - angle_i])


def forces_2d(
    qi: Array,
    vi: Array,
    qj: Array,
    vj: Array,
    si: Array,
    sj: Array,
    stiffness: Array,
    damping: Array = 0.0,
    angle_i: float = 0.0,
    angle_j: float = 0.0,
) -> tuple[Array, Array]:
    """Generalised forces of a planar bushing on both bodies.

    Parameters
    ----------
    qi, vi, qj, vj : (3,)
        The bodies: position of the origin and angle, and their rates.
    si, sj, angle_i, angle_j
        As in `deformation_2d`.
    stiffness, damping : (3, 3) or (3,)
        K and C for the deformation (d_x, d_y, φ); a vector is a diagonal.

    Returns
    -------
    on_i, on_j : (3,)
        Force and torque about the origin of each body.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> rest = np.zeros(3)
    >>> qj, si, sj = np.array([1, 0.1, 0]), np.array([1, 0]), np.zeros(2)
    >>> stiffness = np.array([100.0, 100.0, 0.0])
    >>> on_i, on_j = hn.bushing.forces_2d(rest, rest, qj, rest, si, sj, stiffness=stiffness)
    >>> on_i, bool(np.allclose(on_j, [0, -10, 0]))
    (array([ 0., 10., 10.]), True)
    """
    d = _attachment(qj, sj) - _attachment(qi, si)
    rate = (
        vj[:2]
        + vj[2] * _across(_turned(sj, qj[2]))
        - vi[:2]
        - vi[2] * _across(_turned(si, qi[2]))
        - vi[2] * _across(d)
    )  # ḋ − ω_i × d
    c_rate = np.array([*_turned(rate, -(qi[2] + angle_i)), vj[2] - vi[2]])
    along = _times(stiffness, deformation_2d(qi, qj, si, sj, angle_i, angle_j)) + _times(damping, c_rate)
    f, torque = _turned(along[:2], qi[2] + angle_i), along[2]
    arm_j = _turned(sj, qj[2])
    arm_i = qj[:2] + arm_j - qi[:2]
    return np.array([f[0], f[1], arm_i[0] * f[1] - arm_i[1] * f[0] + torque]), np.array(
        [-f[0], -f[1], arm_j[1] * f[0] - arm_j[0] * f[1] - torque]
    )


def deformation_3d(
    ri: Array,
    Ai: Array,
    rj: Array,
    Aj: Array,
    si: Array,
    sj: Array,
    Bi: Array | None = None,
    Bj: Array | None = None,
) -> Array:
    """Displacement and relative angles of a bushing, (d_x, d_y, d_z, ψ, θ, φ) in the frame on body i.

    Parameters
    ----------
    ri, rj : (3,)
        Origins of the bodies.
    Ai, Aj : (3, 3)
        Rotation matrices, from the axes of each body to the global ones, of whatever coordinates describe the
        rotation.
    si, sj : (3,)
        Where the bushing is attached, in the axes of each body.
    Bi, Bj : (3, 3), optional
        Rotation matrices from the bushing's frames to the axes of the bodies.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> o, axes = np.zeros(3), np.eye(3)
    >>> c = hn.bushing.deformation_3d(o, axes, np.array([1, 0.1, 0]), axes, [1, 0, 0], o)
    >>> bool(np.allclose(c, [0, 0.1, 0, 0, 0, 0]))
    True
    """
    frame_i = Ai if Bi is None else Ai @ np.asarray(Bi)
    frame_j = Aj if Bj is None else Aj @ np.asarray(Bj)
    Aij = frame_i.T @ frame_j
    d = rj + Aj @ np.asarray(sj) - ri - Ai @ np.asarray(si)  # (5.2)
    return np.array([*(frame_i.T @ d), -Aij[1, 2], Aij[0, 2], np.arctan2(Aij[1, 0], Aij[1, 1])])


def forces_3d(
    ri: Array,
    Ai: Array,
    vi: Array,
    wi: Array,
    rj: Array,
    Aj: Array,
    vj: Array,
    wj: Array,
    si: Array,
    sj: Array,
    stiffness: Array,
    damping: Array = 0.0,
    torsion: Array = 0.0,
    torsion_damping: Array = 0.0,
    Bi: Array | None = None,
    Bj: Array | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Force and torque of a bushing on both bodies.

    Parameters
    ----------
    ri, Ai, rj, Aj, si, sj, Bi, Bj
        As in `deformation_3d`.
    vi, vj, wi, wj : (3,)
        Velocities of the origins and angular velocities, in global axes.
    stiffness, damping, torsion, torsion_damping : (3, 3) or (3,)
        K^f, C^f, K^τ and C^τ; a vector is a diagonal.

    Returns
    -------
    force_i, torque_i, force_j, torque_j : (3,)
        In global axes; torques about the origins of the bodies. The generalised force for coordinates in
        which ṙ = v and ω = T(q) q̇ is (force, Tᵀ torque).

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> o, axes = np.zeros(3), np.eye(3)
    >>> force_i, torque_i, force_j, torque_j = hn.bushing.forces_3d(
    ...     o, axes, o, o, np.array([1, 0.1, 0]), axes, o, o, [1, 0, 0], o, stiffness=[100.0, 100.0, 100.0]
    ... )
    >>> bool(np.allclose(force_i, [0, 10, 0])), bool(np.allclose(torque_i, [0, 0, 10]))
    (True, True)
    >>> bool(np.allclose(force_j, -force_i))
    True
    """
    frame_i = Ai if Bi is None else Ai @ np.asarray(Bi)
    c = deformation_3d(ri, Ai, rj, Aj, si, sj, Bi, Bj)
    arm_j = Aj @ np.asarray(sj)
    arm_i = rj + arm_j - ri
    rate = vj + np.cross(wj, arm_j) - vi - np.cross(wi, arm_i)  # ḋ − ω_i × d
    f = frame_i @ (_times(stiffness, c[:3]) + _times(damping, frame_i.T @ rate))
    torque = frame_i @ (_times(torsion, c[3:]) + _times(torsion_damping, frame_i.T @ (wj - wi)))
    return f, np.cross(arm_i, f) + torque, -f, -np.cross(arm_j, f) - torque


def _turned(vector: Array, angle: Array) -> Array:
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([cos * vector[0] - sin * vector[1], sin * vector[0] + cos * vector[1]])


def _across(vector: Array) -> Array:
    return np.array([-vector[1], vector[0]])


def _attachment(q: Array, s: Array) -> Array:
    return q[:2] + _turned(s, q[2])


def _times(matrix: Array, vector: Array) -> Array:
    return matrix @ vector if np.ndim(matrix) == 2 else matrix * vector
