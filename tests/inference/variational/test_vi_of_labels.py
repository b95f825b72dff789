"""Variational inference of labels by any gradient: predictions of its posterior, and the bound as
its score."""

from functools import partial

import pytest
import torch
from support.runs.configured import component, compose_component, generator, normal
from support.small.small_problems import advance

from components.contracts.problems import Batch
from components.inference.variational import vi as module_of_vi
from components.problems.supervised import Supervised
from runner.execution.rng import Streams

vi = partial(compose_component, "inference", "vi")


def curve(n=60):
    """y = sin 2x with little noise, standardised."""
    g = generator(0)
    x = normal(g, n, 1)
    y = torch.sin(2 * x) + 0.1 * normal(g, n, 1)
    train = Batch(x, y / y.std(), torch.ones(n, 1, dtype=torch.bool), 1.0)
    return Supervised("curve", "real", train, train, 20)


def begin(inference, problem):
    rng = Streams(0)
    keys = {"inner_dim": 1, "lengthscale": 1.0, "inner_q_scale": 0.1, "top": "sampled"}
    return inference.init(component("model", "dgp", **keys).build(problem, rng), problem, rng), rng


def test_vi_learns_curve_and_bound_rises():
    problem = curve()
    inference = vi(lr=0.02, n_samples=2)
    state, rng = begin(inference, problem)
    scores_before = problem.score(inference.posterior(state), rng)
    state, info = advance(inference, state, problem, rng, 0, 400)
    after = problem.score(inference.posterior(state), rng)
    assert set(info) == {"elbo", "kl", "grad_norm"}
    assert scores_before["rmse"] > 0.8 > 0.35 > after["rmse"]
    assert after["nelbo"] < scores_before["nelbo"] / 5
    assert {"nlpp", "coverage90"} <= set(after)


def test_score_is_negative_bound_with_fixed_noise(monkeypatch):
    """-Σ_n S⁻¹ Σ_s log p(y_n | ε_ns) + KL, with KL counted once for any number of parts of the
    rows."""
    monkeypatch.setattr(module_of_vi, "CHUNK", 25)
    problem = curve()
    inference = vi(bound_samples=3)
    state, _ = begin(inference, problem)
    assert [tuple(noise.shape) for noise in state.noise] == [(3, 25, 2), (3, 25, 2), (3, 10, 2)]
    with torch.no_grad():
        state.module.inner.q_mean += 0.5
        rows = state.module.elbo_rows(problem.train, torch.cat(state.noise, 1))
        expected = -float(rows.mean(0).sum() - state.module.kl())
    assert float(state.module.kl().detach()) > 1.0
    for _ in range(2):
        assert inference.posterior(state).scores() == {"nelbo": pytest.approx(expected, rel=1e-12)}
    repeat, _ = begin(inference, problem)
    assert all(torch.equal(a, b) for a, b in zip(repeat.noise, state.noise, strict=True))
