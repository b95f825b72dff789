"""The simulated arm: its dynamics against independent derivations, its world's statistics, its
cache."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from scipy.spatial import cKDTree

from components.contracts.roles import Setting
from components.datasets import files
from components.datasets.arm import newton_euler, simulation
from components.datasets.arm.newton_euler import Arm, inverse_dynamics
from components.datasets.arm.sarcos_sim import SarcosSim
from components.datasets.arm.simulation import read_world, simulate, simulated_rows
from components.datasets.arm.trajectories import random_motions
from runner.execution.rng import Streams

WORLD = read_world()
FIRST_POSITIONS, LAST_TORQUES = [0.106044, -0.509008, -0.168937], [27.576567, -4.121285, 19.148432]
YAML = Path(__file__).parents[3] / "conf" / "dataset" / "sarcos_sim.yaml"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(files.platformdirs, "user_cache_path", lambda _: tmp_path / "cache")
    simulated_rows.cache_clear()
    yield
    simulated_rows.cache_clear()


@pytest.fixture(scope="module")
def rows():
    return simulate(WORLD)


def states(n: int, joints: int = 7, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.RandomState(seed)
    return tuple(scale * random.uniform(-1, 1, (n, joints)) for scale in (3.0, 4.0, 20.0))


# ---- the arm as a Lagrangian system, in torch, from the poses of its links alone
# ---------------------------------------
def link_poses(arm: Arm, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotations [J, 3, 3] and centres of mass [J, 3] in the base frame, by homogeneous transforms:
    Craig (2005), eq. (3.6)."""
    pose = torch.eye(4, dtype=torch.float64)
    rotations, centres = [], []
    for i in range(len(q)):
        c, s = torch.cos(q[i] + arm.zero[i]), torch.sin(q[i] + arm.zero[i])
        ca, sa = float(np.cos(arm.twist[i])), float(np.sin(arm.twist[i]))
        zero, one = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
        step = torch.stack(
            [
                torch.stack([c, -s, zero, one * arm.length[i]]),
                torch.stack([s * ca, c * ca, -one * sa, -one * sa * arm.offset[i]]),
                torch.stack([s * sa, c * sa, one * ca, one * ca * arm.offset[i]]),
                torch.tensor([0.0, 0.0, 0.0, 1.0], dtype=torch.float64),
            ]
        )
        pose = pose @ step
        rotations.append(pose[:3, :3])
        centres.append(pose[:3, :3] @ torch.tensor(arm.centre[i]) + pose[:3, 3])
    return torch.stack(rotations), torch.stack(centres)


def kinetic(arm: Arm, q: torch.Tensor, qd: torch.Tensor) -> torch.Tensor:
    """T = Σ_i ½ m_i |ṙ_i|² + ½ ω_iᵀ R_i I_i R_iᵀ ω_i, with ṙ_i and ω_i from the derivatives of the
    poses along q̇."""
    (rotations, _), (turning, velocity) = torch.func.jvp(lambda q: link_poses(arm, q), (q,), (qd,))
    spin = rotations.transpose(1, 2) @ turning  # Rᵀ Ṙ = [ω]× in the link's axes
    omega = torch.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], -1)
    rotational = torch.einsum("ji,jik,jk->", omega, torch.tensor(arm.inertia), omega)
    return 0.5 * (torch.tensor(arm.mass) * (velocity**2).sum(1)).sum() + 0.5 * rotational


def potential(arm: Arm, q: torch.Tensor) -> torch.Tensor:
    """V = −Σ_i m_i gᵀ r_i."""
    return -(torch.tensor(arm.mass) * (link_poses(arm, q)[1] @ torch.tensor(arm.gravity))).sum()


def lagrangian_torque(arm: Arm, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """τ = d/dt ∂T/∂q̇ − ∂T/∂q + ∂V/∂q, by automatic differentiation, for one state [J]."""
    q, qd, qdd = (torch.tensor(a) for a in (q, qd, qdd))
    momentum = torch.func.grad(lambda q, qd: kinetic(arm, q, qd), argnums=1)
    rate = torch.func.jvp(momentum, (q, qd), (qd, qdd))[1]
    return (rate - torch.func.grad(lambda q: kinetic(arm, q, qd) - potential(arm, q))(q)).numpy()


def literal_newton_euler(arm: Arm, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    """Craig (2005), eqs (6.45)–(6.53), as printed, for one state [J]."""
    joints, z = len(q), np.array([0.0, 0.0, 1.0])
    R, P = [], []  # of frame i+1 in frame i
    for i in range(joints):
        c, s = np.cos(q[i] + arm.zero[i]), np.sin(q[i] + arm.zero[i])
        ca, sa = np.cos(arm.twist[i]), np.sin(arm.twist[i])
        R.append(np.array([[c, -s, 0], [s * ca, c * ca, -sa], [s * sa, c * sa, ca]]))  # (3.6)
        P.append(np.array([arm.length[i], -sa * arm.offset[i], ca * arm.offset[i]]))
    w, wd, vd = np.zeros(3), np.zeros(3), -arm.gravity
    F, N = [], []
    for i in range(joints):
        w_next = R[i].T @ w + qd[i] * z  # (6.45)
        wd_next = R[i].T @ wd + np.cross(R[i].T @ w, qd[i] * z) + qdd[i] * z  # (6.46)
        vd = R[i].T @ (np.cross(wd, P[i]) + np.cross(w, np.cross(w, P[i])) + vd)  # (6.47)
        w, wd = w_next, wd_next
        vdc = np.cross(wd, arm.centre[i]) + np.cross(w, np.cross(w, arm.centre[i])) + vd  # (6.48)
        F.append(arm.mass[i] * vdc)  # (6.49)
        N.append(arm.inertia[i] @ wd + np.cross(w, arm.inertia[i] @ w))  # (6.50)
    f, n, tau = np.zeros(3), np.zeros(3), np.zeros(joints)
    for i in reversed(range(joints)):
        Rf = R[i + 1] @ f if i + 1 < joints else f
        Rn = R[i + 1] @ n if i + 1 < joints else n
        lever = P[i + 1] if i + 1 < joints else np.zeros(3)
        n = N[i] + Rn + np.cross(arm.centre[i], F[i]) + np.cross(lever, Rf)  # (6.52)
        f = Rf + F[i]  # (6.51)
        tau[i] = n @ z  # (6.53)
    return tau


def test_equals_the_recursion_as_printed():
    q, qd, qdd = states(20)
    fast = inverse_dynamics(WORLD.arm, q, qd, qdd)
    slow = [literal_newton_euler(WORLD.arm, *state) for state in zip(q, qd, qdd, strict=True)]
    np.testing.assert_allclose(fast, slow, rtol=1e-11, atol=1e-11)


def test_equals_the_lagrangian_derivation():
    q, qd, qdd = states(5, seed=1)
    fast = inverse_dynamics(WORLD.arm, q, qd, qdd)
    slow = [lagrangian_torque(WORLD.arm, *state) for state in zip(q, qd, qdd, strict=True)]
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(
    "wrong", [lambda a, b: np.cross(b, a, axis=0), lambda a, b: 0 * np.cross(a, b, axis=0)]
)
def test_a_wrong_recursion_does_not_equal_the_lagrangian_derivation(monkeypatch, wrong):
    """Cross products of the wrong sign, and none at all."""
    q, qd, qdd = states(1, seed=1)
    right = lagrangian_torque(WORLD.arm, q[0], qd[0], qdd[0])
    monkeypatch.setattr(newton_euler, "cross", wrong)
    assert np.abs(inverse_dynamics(WORLD.arm, q, qd, qdd)[0] - right).max() > 0.1


def test_equals_the_closed_form_of_two_links_in_a_plane():
    """The planar elbow manipulator of Spong, Hutchinson & Vidyasagar (2006), chapter 7; gravity
    against y."""
    m, l1, lc, inertia, g = (1.3, 0.7), 0.5, (0.2, 0.35), (0.03, 0.02), 9.81
    tensors = np.zeros((2, 3, 3))
    tensors[:, 2, 2] = inertia
    arm = Arm(
        twist=np.zeros(2),
        length=np.array([0.0, l1]),
        offset=np.zeros(2),
        zero=np.zeros(2),
        mass=np.array(m),
        centre=np.array([[lc[0], 0, 0], [lc[1], 0, 0]]),
        inertia=tensors,
        gravity=np.array([0.0, -g, 0.0]),
    )
    q, qd, qdd = states(50, joints=2)
    c2, s2 = np.cos(q[:, 1]), np.sin(q[:, 1])
    d11 = m[0] * lc[0] ** 2 + m[1] * (l1**2 + lc[1] ** 2 + 2 * l1 * lc[1] * c2) + sum(inertia)
    d12 = m[1] * (lc[1] ** 2 + l1 * lc[1] * c2) + inertia[1]
    d22 = m[1] * lc[1] ** 2 + inertia[1]
    h = -m[1] * l1 * lc[1] * s2
    g2 = m[1] * lc[1] * g * np.cos(q.sum(1))
    g1 = (m[0] * lc[0] + m[1] * l1) * g * np.cos(q[:, 0]) + g2
    tau1 = d11 * qdd[:, 0] + d12 * qdd[:, 1] + h * (2 * qd[:, 0] * qd[:, 1] + qd[:, 1] ** 2) + g1
    tau2 = d12 * qdd[:, 0] + d22 * qdd[:, 1] - h * qd[:, 0] ** 2 + g2
    np.testing.assert_allclose(
        inverse_dynamics(arm, q, qd, qdd), np.stack([tau1, tau2], 1), rtol=1e-11, atol=1e-11
    )


def mass_matrix(arm, q):
    """M(q) [N, J, J], kg m²: column j is the torque of a unit acceleration of joint j, at rest and
    weightless."""
    n, joints = q.shape
    weightless = Arm(**{**vars(arm), "gravity": np.zeros(3)})
    rest = np.zeros((n * joints, joints))
    unit = np.tile(np.eye(joints), (n, 1))  # row r: unit acceleration of joint r mod J
    torque = inverse_dynamics(weightless, np.repeat(q, joints, axis=0), rest, unit)
    return torque.reshape(n, joints, joints).transpose(0, 2, 1)


def test_mass_matrix_is_symmetric_positive_definite_and_that_of_the_kinetic_energy():
    q, qd, _ = states(20, seed=2)
    M = mass_matrix(WORLD.arm, q)
    np.testing.assert_allclose(M, M.transpose(0, 2, 1), atol=1e-12)
    assert np.linalg.eigvalsh(M).min() > 1e-4
    energy = [
        float(kinetic(WORLD.arm, torch.tensor(a), torch.tensor(b)))
        for a, b in zip(q, qd, strict=True)
    ]
    np.testing.assert_allclose(0.5 * np.einsum("ni,nij,nj->n", qd, M, qd), energy, rtol=1e-11)


def test_torque_is_affine_in_the_acceleration():
    q, qd, qdd = states(10, seed=3)
    bias = inverse_dynamics(WORLD.arm, q, qd, np.zeros_like(qdd))
    expected = np.einsum("nij,nj->ni", mass_matrix(WORLD.arm, q), qdd) + bias
    np.testing.assert_allclose(
        inverse_dynamics(WORLD.arm, q, qd, qdd), expected, rtol=1e-10, atol=1e-10
    )


def test_gravity_torque_is_the_gradient_of_the_potential_energy():
    q = states(10, seed=4)[0]
    rest, h = np.zeros_like(q), 1e-5
    for row, torque in zip(q, inverse_dynamics(WORLD.arm, q, rest, rest), strict=True):
        slope = [
            float(
                potential(WORLD.arm, torch.tensor(row + e))
                - potential(WORLD.arm, torch.tensor(row - e))
            )
            / (2 * h)
            for e in h * np.eye(7)
        ]
        np.testing.assert_allclose(torque, slope, atol=1e-7)


def test_power_is_the_rate_of_the_energy_along_a_motion_without_friction():
    """τᵀ q̇ = d/dt (T + V), by central differences of the energy."""
    dt = 1e-4
    q, qd, qdd = random_motions(
        replace(WORLD.motion, rows=41, rate=1 / dt), 1, np.random.RandomState(0)
    )
    energy = np.array(
        [
            float(
                kinetic(WORLD.arm, torch.tensor(a), torch.tensor(b))
                + potential(WORLD.arm, torch.tensor(a))
            )
            for a, b in zip(q, qd, strict=True)
        ]
    )
    rate = (energy[2:] - energy[:-2]) / (2 * dt)
    power = (inverse_dynamics(WORLD.arm, q, qd, qdd) * qd).sum(1)[1:-1]
    assert np.abs(power).max() > 1.0  # W
    np.testing.assert_allclose(power, rate, atol=1e-4)


def test_the_arm_could_exist():
    arm = WORLD.arm
    assert (arm.mass > 0).all()
    for tensor in arm.inertia:
        np.testing.assert_array_equal(tensor, tensor.T)
        a, b, c = np.linalg.eigvalsh(tensor)
        assert a > 0
        assert a + b > c, "no mass distribution has such moments"
    np.testing.assert_allclose(np.linalg.norm(arm.gravity), 9.81)
    # At rest and hanging straight, the shoulder and elbow hold next to nothing; with the arm raised
    # forward they hold it.
    straight, raised = np.zeros((1, 7)), np.zeros((1, 7))
    raised[0, 0] = np.pi / 2
    rest = np.zeros((1, 7))
    reach = [abs(inverse_dynamics(arm, q, rest, rest)[0, 0]) for q in (straight, raised)]
    assert reach[0] < 5 < 40 < reach[1]


def test_friction_opposes_the_motion():
    qd = np.linspace(-3, 3, 61)[:, None] * np.ones(7)
    torque = WORLD.friction.torque(qd)
    assert ((torque * qd) >= 0).all()
    np.testing.assert_array_equal(WORLD.friction.torque(np.zeros((1, 7))), 0)
    np.testing.assert_allclose(
        torque[-1], WORLD.friction.coulomb + 3 * WORLD.friction.viscous, rtol=1e-6
    )


# ---- motions
# ---------------------------------------------------------------------------------------------------------
def test_motions_stay_within_their_limits_and_use_them():
    q, qd, qdd = random_motions(WORLD.motion, 300, np.random.RandomState(1))
    assert (q >= WORLD.motion.lower).all()
    assert (q <= WORLD.motion.upper).all()
    assert (np.abs(qd) <= WORLD.motion.speed + 1e-9).all()
    assert (np.abs(qdd) <= WORLD.motion.acceleration + 1e-9).all()
    assert (q.max(0) - q.min(0) > 0.9 * (WORLD.motion.upper - WORLD.motion.lower)).all()
    assert (np.abs(qd).max(0) > 0.8 * WORLD.motion.speed).all()


def test_velocities_and_accelerations_are_the_derivatives_of_the_positions():
    dt = 1e-4
    q, qd, qdd = random_motions(
        replace(WORLD.motion, rows=200, rate=1 / dt), 3, np.random.RandomState(2)
    )
    q, qd, qdd = (a.reshape(3, 200, 7) for a in (q, qd, qdd))
    np.testing.assert_allclose((q[:, 2:] - q[:, :-2]) / (2 * dt), qd[:, 1:-1], atol=1e-5)
    np.testing.assert_allclose((qd[:, 2:] - qd[:, :-2]) / (2 * dt), qdd[:, 1:-1], atol=1e-4)


# ---- the world
# -------------------------------------------------------------------------------------------------------
def test_as_many_rows_as_sarcos_in_seconds():
    started = time.process_time()
    rows = simulate(WORLD)
    assert time.process_time() - started < 5
    shapes = [getattr(rows, name).shape for name in ("x_train", "y_train", "x_test", "y_test")]
    assert shapes == [(44_484, 21), (44_484, 7), (4_449, 21), (4_449, 7)]


def test_the_same_world_every_time(rows):
    np.random.seed(1)
    again = simulate(read_world())
    for name, array in vars(rows).items():
        np.testing.assert_array_equal(array, getattr(again, name))
    other = simulate(replace(WORLD, seed=1))
    assert not np.array_equal(other.x_train, rows.x_train)
    # The draws are numpy's frozen ones; rounded, they do not depend on the processor.
    np.testing.assert_allclose(rows.x_train[0, :3], FIRST_POSITIONS, atol=2e-6)
    np.testing.assert_allclose(rows.y_test[-1, :3], LAST_TORQUES, atol=2e-6)


def test_torques_are_those_of_the_recorded_states_up_to_noise(rows):
    q, qd, qdd = np.split(rows.x_test, 3, axis=1)
    clean = inverse_dynamics(WORLD.arm, q, qd, qdd) + WORLD.friction.torque(qd)
    error = (rows.y_test - clean).std(0)
    assert (error > WORLD.noise.torque * 0.97).all()
    assert (error < 0.15 * rows.y_test.std(0)).all(), "noise of the inputs comes on top"
    tighter = simulate(replace(WORLD, noise=simulation.SensorNoise(0.0, 0.0, 0.0, np.zeros(7))))
    q, qd, qdd = np.split(tighter.x_test, 3, axis=1)
    clean = inverse_dynamics(WORLD.arm, q, qd, qdd) + WORLD.friction.torque(qd)
    # six decimals of q̇ upon the steep tanh
    np.testing.assert_allclose(tighter.y_test, clean, atol=1e-4)


def nearest_distances(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    scale = others.std(0)
    return cKDTree(others / scale).query(rows / scale)[0]


def test_test_rows_are_of_motions_that_are_not_in_training(rows):
    """A test row is as far from the training rows as a training row from those of other motions; in
    a split that leaks, where neighbours in time are in training, it is much nearer."""
    motion = np.arange(len(rows.x_train)) // WORLD.motion.rows
    chosen = np.arange(0, len(rows.x_train), 1483)
    between = np.median(
        [
            nearest_distances(rows.x_train[[i]], rows.x_train[motion != motion[i]])[0]
            for i in chosen[:20]
        ]
    )
    ours = np.median(nearest_distances(rows.x_test[::200], rows.x_train))
    leaking = np.median(
        nearest_distances(rows.x_train[chosen], np.delete(rows.x_train, chosen, axis=0))
    )
    assert ours > 0.8 * between
    assert leaking < 0.8 * between, "the same check sees a split that leaks"
    assert len(np.unique(np.concatenate([rows.x_train, rows.x_test]), axis=0)) == 44_484 + 4_449


def test_a_linear_model_explains_as_much_as_of_the_real_arm(rows):
    """R² of a linear regression on all rows, between 0.6 and 0.95 for each torque (real test file:
    0.72 to 0.95)."""

    def design(x):
        z = (x - rows.x_train.mean(0)) / rows.x_train.std(0)
        return np.concatenate([z, np.ones((len(z), 1))], 1)

    weights = np.linalg.lstsq(design(rows.x_train), rows.y_train, rcond=None)[0]
    residual = rows.y_test - design(rows.x_test) @ weights
    r2 = 1 - residual.var(0) / rows.y_test.var(0)
    assert (r2 > 0.6).all(), r2
    assert (r2 < 0.95).all(), r2
    assert (
        (rows.y_train.std(0) > [8, 6, 4, 4, 0.3, 0.5, 0.6])
        & (rows.y_train.std(0) < [40, 30, 20, 25, 3, 4, 5])
    ).all()


# ---- the cache
# -------------------------------------------------------------------------------------------------------
@pytest.fixture
def small(monkeypatch):
    """A world of few rows; counts how often it is generated."""
    generated = []
    monkeypatch.setattr(
        simulation,
        "simulate",
        lambda world: (
            generated.append(1) or simulate(replace(world, rows={"train": 50, "test": 20}))
        ),
    )
    return generated


def fresh(folder: Path):
    simulated_rows.cache_clear()
    return simulated_rows(folder)


def test_rows_are_kept_in_the_data_folder(tmp_path, small):
    first = fresh(tmp_path / "data")
    assert len(list((tmp_path / "data" / "sarcos_sim").glob("*.npz"))) == 1
    second = fresh(tmp_path / "data")
    assert small == [1]
    for name, array in vars(first).items():
        np.testing.assert_array_equal(array, getattr(second, name))
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1.0


def test_a_torn_cache_is_made_anew(tmp_path, small):
    first = fresh(tmp_path)
    (kept,) = (tmp_path / "sarcos_sim").iterdir()
    whole = kept.read_bytes()
    for content in (b"", whole[: len(whole) // 2], whole[:600] + b"\xff" * 40 + whole[640:]):
        kept.write_bytes(content)
        again = fresh(tmp_path)
        np.testing.assert_array_equal(again.x_train, first.x_train)
        assert kept.read_bytes() == whole or len(kept.read_bytes()) == len(whole)
    assert len(small) == 4


def test_a_cache_whose_rows_were_changed_is_made_anew(tmp_path, small):
    """In a file that is whole: it says whose rows it holds, and its name says so too."""
    first = fresh(tmp_path)
    (kept,) = (tmp_path / "sarcos_sim").iterdir()
    stored = dict(np.load(kept))
    for changed in (
        {"y_train": stored["y_train"] + 1e-6},
        {"x_test": stored["x_test"][:-1]},
        {"digest": np.array("0" * 64)},
    ):
        np.savez(kept, **stored | changed)
        again = fresh(tmp_path)
        for name, array in vars(first).items():
            np.testing.assert_array_equal(getattr(again, name), array)
    assert len(small) == 4


def test_parts_that_a_kill_has_left_are_removed(tmp_path, small):
    folder = tmp_path / "sarcos_sim"
    folder.mkdir()
    (folder / ".rows-0123.npz.4321.part").write_bytes(b"half")
    (folder / ".mine.npz.4322.part").write_bytes(b"growing")
    os.utime(folder / ".rows-0123.npz.4321.part", (0, 0))
    fresh(tmp_path)
    assert sorted(p.suffix for p in folder.iterdir()) == [".npz", ".part"]
    assert (folder / ".mine.npz.4322.part").exists()


def test_other_parameters_are_another_world(tmp_path, small, monkeypatch):
    fresh(tmp_path)
    monkeypatch.setattr(simulation, "checksum", lambda: "0" * 64)
    fresh(tmp_path)
    assert len(small) == 2
    assert len(list((tmp_path / "sarcos_sim").iterdir())) == 2
    kept = tmp_path / "sarcos_sim" / f"rows-{'0' * 12}.npz"
    # the same name, other parameters
    monkeypatch.setattr(simulation, "checksum", lambda: "0" * 12 + "1" * 52)
    fresh(tmp_path)
    assert len(small) == 3
    assert str(np.load(kept)["checksum"]) == "0" * 12 + "1" * 52


def test_a_read_only_folder_is_left_alone(tmp_path, small):
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o555)
    fresh(folder)
    fresh(folder)
    assert small == [1]
    assert list(folder.iterdir()) == []
    assert len(list((tmp_path / "cache" / "sarcos_sim").iterdir())) == 1
    folder.chmod(0o755)


def test_nothing_can_be_written(tmp_path, small, monkeypatch):
    monkeypatch.setattr(simulation, "writable", lambda _: False)
    fresh(tmp_path)
    fresh(tmp_path)
    assert len(small) == 2
    monkeypatch.setattr(simulation, "writable", lambda _: True)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(simulation.np, "savez", full)
    assert fresh(tmp_path).x_train.shape == (50, 21)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


# ---- the dataset
# -----------------------------------------------------------------------------------------------------
def load(tmp_path, seed: int = 0, **overrides):
    setting = Setting(tmp_path, torch.device("cpu"), torch.float64, replicates=1)
    dataset = SarcosSim(**(yaml.safe_load(YAML.read_text()) | overrides))
    problem = dataset.load(Streams(seed), setting)
    assert problem.name == dataset.identity(tmp_path, offline=True) == "sarcos-sim"
    return problem


def test_dataset(tmp_path):
    problem = load(tmp_path, n_train=200, batch_size=50)
    assert problem.train.x.shape == (200, 21)
    assert problem.train.mask.sum(1).tolist() == [1] * 200
    assert problem.test.x.shape == (4_449, 21)
    assert problem.test.mask.all()
    assert problem.task_names == [f"joint {j}" for j in range(1, 8)]
    _, batch = next(iter(problem.batches("minibatch", Streams(0), 0, 1)))
    assert batch.x.shape == (50, 21)
    assert batch.scale == 4.0
    assert load(tmp_path, n_train=5, n_test=7).test.x.shape == (7, 21)


def test_the_seed_draws_rows_of_one_world(tmp_path):
    a, b = (load(tmp_path, seed, n_train=44_484, labels_per_row=7, n_test=1) for seed in (0, 1))
    rows = [torch.cat([p.train.x, p.train.y * p.y_std + p.y_mean], 1).double() for p in (a, b)]
    assert not torch.equal(*rows)
    key = torch.linspace(1, 2, 28, dtype=torch.float64)  # no two rows have the same
    ordered = [r[(r @ key).argsort()] for r in rows]
    torch.testing.assert_close(*ordered, rtol=1e-9, atol=1e-9)
