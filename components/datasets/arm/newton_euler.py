"""Rigid-body inverse dynamics of a serial arm with revolute joints, for many states.

All states are computed together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Arm:
    """J revolute joints in modified Denavit–Hartenberg form.

    Link i moves with joint i; the joint's axis is z of the link's frame.

    Source: Craig (2005) Introduction to Robotics, section 3.4.
    """

    twist: Array  # [J] α_{i−1}: angle from z_{i−1} to z_i about x_{i−1}, rad
    length: Array  # [J] a_{i−1}: distance from z_{i−1} to z_i along x_{i−1}, m
    offset: Array  # [J] d_i: distance from x_{i−1} to x_i along z_i, m
    zero: Array  # [J] angle θ_i at which the joint reads q_i = 0, rad
    mass: Array  # [J] kg
    centre: Array  # [J, 3] centre of mass in the link's own frame, m
    inertia: Array  # [J, 3, 3] about the centre of mass, axes of the link's frame, kg m²
    gravity: Array  # [3] acceleration of gravity in the base frame, m/s²


def cross(a: Array, b: Array) -> Array:
    """a × b along the first dimension, [3, N] or [3, 1]."""
    return np.stack(
        (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    )


def to_link(v: Array, cos: Array, sin: Array, twist: float) -> Array:
    """Rz(θ)ᵀ Rx(α)ᵀ v: a vector of frame i−1 in the axes of frame i; v [3, N], cos θ and sin θ
    [N]."""
    x = v[0]
    y = np.cos(twist) * v[1] + np.sin(twist) * v[2]
    z = np.cos(twist) * v[2] - np.sin(twist) * v[1]
    return np.stack((cos * x + sin * y, cos * y - sin * x, z))  # [3, N]


def to_parent(v: Array, cos: Array, sin: Array, twist: float) -> Array:
    """Rx(α) Rz(θ) v: a vector of frame i in the axes of frame i−1."""
    x = cos * v[0] - sin * v[1]
    y = sin * v[0] + cos * v[1]
    z = v[2]
    # [3, N]
    return np.stack(
        (x, np.cos(twist) * y - np.sin(twist) * z, np.sin(twist) * y + np.cos(twist) * z)
    )


def inverse_dynamics(arm: Arm, q: Array, qd: Array, qdd: Array) -> Array:
    """Joint torques τ = M(q) q̈ + C(q, q̇) q̇ + g(q) by the recursive Newton–Euler algorithm.

    Outwards: ω_i = Rᵀω_{i−1} + q̇_i ẑ;  ω̇_i = Rᵀω̇_{i−1} + Rᵀω_{i−1} × q̇_i ẑ + q̈_i ẑ;
    v̇_i = Rᵀ(ω̇_{i−1} × p_i + ω_{i−1} × (ω_{i−1} × p_i) + v̇_{i−1}), with v̇_0 = −g;
    F_i = m_i (ω̇_i × c_i + ω_i × (ω_i × c_i) + v̇_i);  N_i = I_i ω̇_i + ω_i × I_i ω_i.
    Inwards: f_i = R f_{i+1} + F_i;  n_i = N_i + R n_{i+1} + c_i × F_i + p_{i+1} × R f_{i+1};  τ_i = n_i · ẑ.

    q rad, q̇ rad/s, q̈ rad/s², each [N, J] -> τ [N, J] in N m.

    Source: Craig (2005) Introduction to Robotics, eqs (6.45)–(6.53), after Luh, Walker & Paul
    (1980)."""
    n, joints = q.shape
    theta = q.T + arm.zero[:, None]  # [J, N]
    cos = np.cos(theta)
    sin = np.sin(theta)
    # Origin of frame i in frame i−1.
    p = np.stack((arm.length, -np.sin(arm.twist) * arm.offset, np.cos(arm.twist) * arm.offset), -1)[
        ..., None
    ]
    c = arm.centre[..., None]  # [J, 3, 1]
    z = np.array([[0.0], [0.0], [1.0]])
    omega = np.zeros((3, n))
    omega_dot = np.zeros((3, n))
    v_dot = np.broadcast_to(-arm.gravity[:, None], (3, n))
    force = []
    moment = []
    for i in range(joints):
        turn = (cos[i], sin[i], float(arm.twist[i]))
        # (6.47)
        v_dot = to_link(cross(omega_dot, p[i]) + cross(omega, cross(omega, p[i])) + v_dot, *turn)
        omega = to_link(omega, *turn)
        spin = qd[:, i] * z  # [3, N]
        omega_dot = to_link(omega_dot, *turn) + cross(omega, spin) + qdd[:, i] * z  # (6.46)
        omega = omega + spin  # (6.45)
        acceleration = cross(omega_dot, c[i]) + cross(omega, cross(omega, c[i])) + v_dot  # (6.48)
        force.append(arm.mass[i] * acceleration)  # (6.49)
        moment.append(arm.inertia[i] @ omega_dot + cross(omega, arm.inertia[i] @ omega))  # (6.50)

    tau = np.empty((n, joints))
    f = np.zeros((3, n))
    m = np.zeros((3, n))  # of link i+1 upon link i, in the axes of frame i
    lever = np.zeros((3, 1))  # p_{i+1}
    for i in reversed(range(joints)):
        m = moment[i] + m + cross(c[i], force[i]) + cross(lever, f)  # (6.52)
        f = f + force[i]  # (6.51)
        tau[:, i] = m[2]  # (6.53)
        turn = (cos[i], sin[i], float(arm.twist[i]))
        f = to_parent(f, *turn)
        m = to_parent(m, *turn)
        lever = p[i]
    return tau
