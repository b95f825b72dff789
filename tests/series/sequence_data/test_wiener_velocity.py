"""The tracked vehicle compared with literal formulas."""

import pytest
import torch
from support.runs.configured import F64, component, double, load
from support.targets.known_targets import z_score
from torch.testing import assert_close


def test_wiener_matrices_equal_those_of_d_3_3():
    system = component("dataset", "wiener_velocity").system()
    d = 0.1
    A = [[1, 0, d, 0], [0, 1, 0, d], [0, 0, 1, 0], [0, 0, 0, 1]]
    a = d**3 / 3
    b = d**2 / 2
    Q = [[a, 0, b, 0], [0, a, 0, b], [b, 0, d, 0], [0, b, 0, d]]
    assert torch.equal(system.A, double(A))
    assert_close(system.Q, double(Q))
    assert system.H.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]
    assert torch.equal(system.Sigma, torch.eye(2, dtype=F64))
    assert system.m0.tolist() == [140, 140, 50, 0]


@pytest.mark.parametrize("delta", [0.1, 0.8])
def test_wiener_noise_equals_the_integral_over_a_step(delta):
    """Q = ∫₀^Δ e^{Fs} G Gᵀ e^{Fᵀs} ds and A = e^{FΔ} of dx = F x dt + G dW, by the midpoint
    rule."""
    system = component("dataset", "wiener_velocity", delta=delta).system()
    F = torch.zeros(4, 4, dtype=F64)
    F[0, 2] = F[1, 3] = 1.0
    G = torch.eye(4, dtype=F64)[:, 2:]
    times = (torch.arange(2000, dtype=F64) + 0.5) * (delta / 2000)
    pushed = torch.linalg.matrix_exp(times[:, None, None] * F) @ G
    assert_close(system.Q, (pushed @ pushed.mT).sum(0) * delta / 2000, rtol=1e-6, atol=1e-9)
    assert_close(system.A, torch.linalg.matrix_exp(delta * F))


def test_wiener_noise_has_the_given_covariances():
    problem, _ = load("wiener_velocity", replicates=50, n_steps=4000)
    system = problem.system
    x = problem.states[0]
    drive = x[1:] - x[:-1] @ system.A.T
    products = torch.einsum("ti,tj->tij", drive, drive)
    assert z_score(products, system.Q).abs().max() < 4.5
    noise = (problem.observations - problem.states @ system.H.T).flatten(0, 1)
    assert z_score(torch.einsum("ti,tj->tij", noise, noise), system.Sigma).abs().max() < 4.5
    assert z_score(noise, 0.0).abs().max() < 4


def test_states_are_independent_of_replicates_and_precision():
    problem, _ = load("wiener_velocity", replicates=1, n_steps=50)
    many, _ = load("wiener_velocity", replicates=7, n_steps=50)
    rough, _ = load("wiener_velocity", replicates=1, n_steps=50, dtype=torch.float32)
    assert torch.equal(problem.states, many.states)
    assert torch.equal(problem.states.float(), rough.states)
    assert many.states.shape == (1, 50, 4)
    assert many.observations.shape == (7, 50, 2)
    assert not torch.equal(many.observations[0], many.observations[1])


def test_batches_end_with_the_sequence_and_start_anywhere():
    problem, rng = load("wiener_velocity", n_steps=5)
    batches = list(problem.batches("observation", rng, 2, 99))
    assert [step for step, _ in batches] == [3, 4, 5]
    assert torch.equal(batches[0][1].y, problem.observations[:, 2])
