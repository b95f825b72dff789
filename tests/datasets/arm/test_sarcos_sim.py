"""The simulated arm: the statistics of its world."""

import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_equal
from scipy.spatial import cKDTree
from support.runs.configured import F64, component, make_setting
from torch.testing import assert_close

from components.datasets.arm.newton_euler import inverse_dynamics
from components.datasets.arm.simulation import SensorNoise, read_world, simulate, simulated_rows
from runner.execution.rng import Streams

WORLD = read_world()
FIRST_POSITIONS = [0.106044, -0.509008, -0.168937]
LAST_TORQUES = [27.576567, -4.121285, 19.148432]


@pytest.fixture(scope="module")
def rows():
    return simulate(WORLD)


def test_simulation_of_all_rows_takes_seconds():
    started = time.process_time()
    rows = simulate(WORLD)
    assert time.process_time() - started < 5
    shapes = [getattr(rows, name).shape for name in ("x_train", "y_train", "x_test", "y_test")]
    assert shapes == [(44_484, 21), (44_484, 7), (4_449, 21), (4_449, 7)]


def test_simulation_is_deterministic(rows):
    np.random.seed(1)
    assert_equal(vars(simulate(read_world())), vars(rows))
    assert not np.array_equal(simulate(replace(WORLD, seed=1)).x_train, rows.x_train)
    # The draws are numpy's frozen ones; rounded, they do not depend on the processor.
    assert_allclose(rows.x_train[0, :3], FIRST_POSITIONS, atol=2e-6)
    assert_allclose(rows.y_test[-1, :3], LAST_TORQUES, atol=2e-6)


def clean_torques(rows):
    q, qd, qdd = np.split(rows.x_test, 3, axis=1)
    return inverse_dynamics(WORLD.arm, q, qd, qdd) + WORLD.friction.torque(qd)


def test_torques_equal_inverse_dynamics_up_to_noise(rows):
    error = (rows.y_test - clean_torques(rows)).std(0)
    assert (error > WORLD.noise.torque * 0.97).all()
    assert (error < 0.15 * rows.y_test.std(0)).all(), "noise of the inputs comes on top"
    tighter = simulate(replace(WORLD, noise=SensorNoise(0.0, 0.0, 0.0, np.zeros(7))))
    # six decimals of q̇ upon the steep tanh
    assert_allclose(tighter.y_test, clean_torques(tighter), atol=1e-4)


def nearest_distances(rows, others):
    scale = others.std(0)
    return cKDTree(others / scale).query(rows / scale)[0]


def test_test_rows_come_from_motions_outside_training(rows):
    """Test rows are as far from training rows as training rows are from other motions. In a leaking
    split, with adjacent times in training, they are much nearer."""
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


def test_linear_model_explains_the_same_share_as_on_real_data(rows):
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


def test_rows_are_cached_by_the_process():
    assert simulated_rows() is simulated_rows()
    assert not any(array.flags.writeable for array in vars(simulated_rows()).values())


def load(tmp_path, seed=0, **overrides):
    dataset = component("dataset", "sarcos_sim", **overrides)
    problem = dataset.load(Streams(seed), make_setting(tmp_path))
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


def test_seed_draws_rows_of_one_simulation(tmp_path):
    a, b = (load(tmp_path, seed, n_train=44_484, labels_per_row=7, n_test=1) for seed in (0, 1))
    rows = [torch.cat([p.train.x, p.train.y * p.y_std + p.y_mean], 1).double() for p in (a, b)]
    assert not torch.equal(*rows)
    key = torch.linspace(1, 2, 28, dtype=F64)  # a distinct value for each row
    ordered = [r[(r @ key).argsort()] for r in rows]
    assert_close(*ordered, rtol=1e-9, atol=1e-9)
