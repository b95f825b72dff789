"""The dynamics of the simulated arm against independent derivations, and its motions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from support.runs.configured import F64, double

from components.datasets.arm import newton_euler
from components.datasets.arm.newton_euler import inverse_dynamics
from components.datasets.arm.simulation import read_world
from components.datasets.arm.trajectories import random_motions

WORLD = read_world()
TURN = double([[0, -1, 0, 0], [1, 0, 0, 0], [0] * 4, [0] * 4])
LIFT = double([[0] * 4, [0] * 4, [0, 0, 0, 1], [0] * 4])


def states(n, joints=7, seed=0):
    random = np.random.RandomState(seed)
    return tuple(scale * random.uniform(-1, 1, (n, joints)) for scale in (3.0, 4.0, 20.0))


def link_poses(arm, q):
    """Rotations [J, 3, 3] and centres of mass [J, 3] in the base frame by Craig (2005), eq. (3.6):
    exponentials of a screw along x and a screw along z for each joint."""
    pose = torch.eye(4, dtype=F64)
    rotations = []
    centres = []
    for i, (twist, length) in enumerate(zip(arm.twist, arm.length, strict=True)):
        along_x = double([[0, 0, 0, length], [0, 0, -twist, 0], [0, twist, 0, 0], [0] * 4])
        along_z = (q[i] + arm.zero[i]) * TURN + arm.offset[i] * LIFT
        pose = pose @ torch.linalg.matrix_exp(along_x) @ torch.linalg.matrix_exp(along_z)
        rotations.append(pose[:3, :3])
        centres.append(pose[:3, :3] @ double(arm.centre[i]) + pose[:3, 3])
    return torch.stack(rotations), torch.stack(centres)


def kinetic(arm, q, qd):
    """T = Σ_i ½ m_i |ṙ_i|² + ½ ω_iᵀ R_i I_i R_iᵀ ω_i, with ṙ_i and ω_i from the derivatives of the
    poses along q̇."""
    (rotations, _), (turning, velocity) = torch.func.jvp(lambda q: link_poses(arm, q), (q,), (qd,))
    spin = rotations.transpose(1, 2) @ turning  # Rᵀ Ṙ = [ω]× in the link's axes
    omega = torch.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], -1)
    rotational = torch.einsum("ji,jik,jk->", omega, torch.tensor(arm.inertia), omega)
    return 0.5 * (torch.tensor(arm.mass) * (velocity**2).sum(1)).sum() + 0.5 * rotational


def potential(arm, q):
    """V = −Σ_i m_i gᵀ r_i."""
    return -(torch.tensor(arm.mass) * (link_poses(arm, q)[1] @ torch.tensor(arm.gravity))).sum()


def lagrangian_torque(arm, q, qd, qdd):
    """τ = d/dt ∂T/∂q̇ − ∂T/∂q + ∂V/∂q, by automatic differentiation, for one state [J]."""
    q, qd, qdd = (torch.tensor(a) for a in (q, qd, qdd))
    momentum = torch.func.grad(lambda q, qd: kinetic(arm, q, qd), argnums=1)
    rate = torch.func.jvp(momentum, (q, qd), (qd, qdd))[1]
    return (rate - torch.func.grad(lambda q: kinetic(arm, q, qd) - potential(arm, q))(q)).numpy()


def literal_newton_euler(arm, q, qd, qdd):
    """Craig (2005), eqs (6.45)–(6.53), as printed, for one state [J]."""
    joints = len(q)
    z = np.array([0.0, 0.0, 1.0])
    # of frame i+1 in frame i
    R = []
    P = []
    for i in range(joints):
        c = np.cos(q[i] + arm.zero[i])
        s = np.sin(q[i] + arm.zero[i])
        ca = np.cos(arm.twist[i])
        sa = np.sin(arm.twist[i])
        R.append(np.array([[c, -s, 0], [s * ca, c * ca, -sa], [s * sa, c * sa, ca]]))  # (3.6)
        P.append(np.array([arm.length[i], -sa * arm.offset[i], ca * arm.offset[i]]))
    w = np.zeros(3)
    wd = np.zeros(3)
    vd = -arm.gravity
    F = []
    N = []
    for i in range(joints):
        w_next = R[i].T @ w + qd[i] * z  # (6.45)
        wd_next = R[i].T @ wd + np.cross(R[i].T @ w, qd[i] * z) + qdd[i] * z  # (6.46)
        vd = R[i].T @ (np.cross(wd, P[i]) + np.cross(w, np.cross(w, P[i])) + vd)  # (6.47)
        w = w_next
        wd = wd_next
        vdc = np.cross(wd, arm.centre[i]) + np.cross(w, np.cross(w, arm.centre[i])) + vd  # (6.48)
        F.append(arm.mass[i] * vdc)  # (6.49)
        N.append(arm.inertia[i] @ wd + np.cross(w, arm.inertia[i] @ w))  # (6.50)
    f = np.zeros(3)
    n = np.zeros(3)
    tau = np.zeros(joints)
    for i in reversed(range(joints)):
        Rf = R[i + 1] @ f if i + 1 < joints else f
        Rn = R[i + 1] @ n if i + 1 < joints else n
        lever = P[i + 1] if i + 1 < joints else np.zeros(3)
        n = N[i] + Rn + np.cross(arm.centre[i], F[i]) + np.cross(lever, Rf)  # (6.52)
        f = Rf + F[i]  # (6.51)
        tau[i] = n @ z  # (6.53)
    return tau


@pytest.mark.parametrize(
    ("literal", "n", "tolerance"),
    [(literal_newton_euler, 20, 1e-11), (lagrangian_torque, 3, 1e-10)],
    ids=["recursion_as_printed", "lagrangian_derivation"],
)
def test_torque_equals_literal_derivations(literal, n, tolerance):
    q, qd, qdd = states(n, seed=1)
    fast = inverse_dynamics(WORLD.arm, q, qd, qdd)
    slow = [literal(WORLD.arm, *state) for state in zip(q, qd, qdd, strict=True)]
    assert_allclose(fast, slow, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize(
    "wrong", [lambda a, b: np.cross(b, a, axis=0), lambda a, b: 0 * np.cross(a, b, axis=0)]
)
def test_wrong_recursion_differs_from_lagrangian_derivation(monkeypatch, wrong):
    """The cross products have the wrong sign, or are missing."""
    q, qd, qdd = states(1, seed=1)
    right = lagrangian_torque(WORLD.arm, q[0], qd[0], qdd[0])
    monkeypatch.setattr(newton_euler, "cross", wrong)
    assert np.abs(inverse_dynamics(WORLD.arm, q, qd, qdd)[0] - right).max() > 0.1


def test_inertia_is_physically_possible():
    arm = WORLD.arm
    assert (arm.mass > 0).all()
    for tensor in arm.inertia:
        assert_array_equal(tensor, tensor.T)
        a, b, c = np.linalg.eigvalsh(tensor)
        assert a > 0
        assert a + b > c, "no mass distribution has such moments"
    assert_allclose(np.linalg.norm(arm.gravity), 9.81)
    # A straight hanging arm at rest needs hardly any torque at shoulder and elbow; an arm raised
    # forward does.
    straight = np.zeros((1, 7))
    raised = np.zeros((1, 7))
    raised[0, 0] = np.pi / 2
    rest = np.zeros((1, 7))
    reach = [abs(inverse_dynamics(arm, q, rest, rest)[0, 0]) for q in (straight, raised)]
    assert reach[0] < 5 < 40 < reach[1]


def test_friction_opposes_the_motion():
    qd = np.linspace(-3, 3, 61)[:, None] * np.ones(7)
    torque = WORLD.friction.torque(qd)
    assert ((torque * qd) >= 0).all()
    assert_array_equal(WORLD.friction.torque(np.zeros((1, 7))), 0)
    assert_allclose(torque[-1], WORLD.friction.coulomb + 3 * WORLD.friction.viscous, rtol=1e-6)


def test_motions_use_their_limits_and_stay_within():
    q, qd, qdd = random_motions(WORLD.motion, 300, np.random.RandomState(1))
    assert (q >= WORLD.motion.lower).all()
    assert (q <= WORLD.motion.upper).all()
    assert (np.abs(qd) <= WORLD.motion.speed + 1e-9).all()
    assert (np.abs(qdd) <= WORLD.motion.acceleration + 1e-9).all()
    assert (q.max(0) - q.min(0) > 0.9 * (WORLD.motion.upper - WORLD.motion.lower)).all()
    assert (np.abs(qd).max(0) > 0.8 * WORLD.motion.speed).all()


def test_velocities_and_accelerations_are_derivatives():
    dt = 1e-4
    q, qd, qdd = random_motions(
        replace(WORLD.motion, rows=200, rate=1 / dt), 3, np.random.RandomState(2)
    )
    q, qd, qdd = (a.reshape(3, 200, 7) for a in (q, qd, qdd))
    assert_allclose((q[:, 2:] - q[:, :-2]) / (2 * dt), qd[:, 1:-1], atol=1e-5)
    assert_allclose((qd[:, 2:] - qd[:, :-2]) / (2 * dt), qdd[:, 1:-1], atol=1e-4)
