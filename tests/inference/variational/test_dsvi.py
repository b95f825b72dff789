"""Doubly stochastic VI: learning, bitwise resumption, and the effect of each option."""

from functools import partial

import pytest
import torch
from support.small.small_problems import check_resumed, classes, component, real, tensors, train

from runner.execution.rng import Streams

MODEL = {"n_inducing": 10, "inner_dim": 2}


dsvi = partial(component, "inference", "dsvi")


@pytest.mark.parametrize("name", ["smdgp", "mmdgp", "cmdgp", "idgp"])
@pytest.mark.parametrize(
    "options", [{}, {"natural_layers": "all", "noise_warmup": 4, "schedule": "cosine"}]
)
def test_resumed_run_is_bit_identical(name, options, tmp_path):
    problem = real(batch_size=16)
    model = component("model", name, **MODEL)
    assert len(tensors(check_resumed(dsvi(**options), model, problem, tmp_path, 7, 3))) > 10


@pytest.mark.parametrize("name", ["smdgp", "mmdgp", "cmdgp", "idgp"])
def test_dsvi_learns_regression(name):
    problem = real(n=80, missing=0.3)
    model = component("model", name, n_inducing=20, inner_dim=3)
    inference = dsvi(lr=0.03)
    start, _ = train(inference, model, problem, 0)
    end, rng = train(inference, model, problem, 300)
    first_scores = problem.score(inference.posterior(start), rng)
    last_scores = problem.score(inference.posterior(end), rng)
    assert last_scores["rmse"] < 0.6 * first_scores["rmse"]
    assert last_scores["nlpp"] < first_scores["nlpp"]


def test_dsvi_learns_classes():
    problem = classes(n=80, n_tasks=2)
    model = component("model", "smdgp", n_inducing=20, inner_dim=3)
    inference = dsvi(lr=0.03)
    end, rng = train(inference, model, problem, 200)
    assert problem.score(inference.posterior(end), rng)["accuracy"] > 0.7


def test_learning_rate_follows_schedule():
    cosine = dsvi(lr=0.1, schedule="cosine", decay_steps=100, decay_factor=0.2)
    step = dsvi(lr=0.1, schedule="step", decay_steps=100, decay_factor=0.5)
    rates = [cosine.learning_rate(k) for k in (1, 51, 101, 1000)]
    assert rates == pytest.approx([0.1, 0.06, 0.02, 0.02])
    rates = [step.learning_rate(k) for k in (1, 100, 101, 201)]
    assert rates == pytest.approx([0.1, 0.1, 0.05, 0.025])
    assert dsvi(lr=0.1).learning_rate(10**6) == 0.1


def test_noise_warmup_fixes_only_the_noise():
    problem = real()
    model = component("model", "smdgp", **MODEL)
    inference = dsvi(noise_warmup=3)
    start, _ = train(inference, model, problem, 0)
    held, _ = train(inference, model, problem, 3)
    free, _ = train(inference, model, problem, 4)
    noise = [s.module.likelihood.raw_noise for s in (start, held, free)]
    assert torch.equal(noise[0], noise[1])
    assert not torch.equal(noise[0], noise[2])
    means = [s.module.variational_layers()["top"].q_mean for s in (start, held)]
    assert not torch.equal(*means)


SHALLOW = {
    "smdgp": {"depth": 0, "inner_dim": 1},
    "igp": {"posterior": "sparse"},
    "cgp": {"posterior": "sparse"},
}


@pytest.mark.parametrize("name", SHALLOW)
def test_full_natural_step_is_optimal_for_shallow_model(name):
    """For a conjugate model without inner layers, the gradient with respect to q(u) vanishes after
    one step with γ = 1."""
    problem = real()
    model = component("model", name, n_inducing=10, **SHALLOW[name])

    def step_bound(gamma):
        inference = dsvi(natural_layers="top", natural_gamma=gamma, lr=1e-12)
        module = train(inference, model, problem, 1)[0].module
        module.zero_grad()
        noise = module.draw_noise(problem.train, 1, Streams(0).noise)
        return module, module.elbo(problem.train, noise)["elbo"]

    module, whole = step_bound(1.0)
    whole.backward()
    layer = module.variational_layers()["top"]
    assert layer.q_mean.grad.abs().max() < 1e-7
    assert layer.q_tril.grad.abs().max() < 1e-7
    assert step_bound(0.5)[1] < whole - 1e-3, "half a step is not enough"


def test_adam_excludes_natural_parameters():
    problem = real()
    model = component("model", "mmdgp", **MODEL)
    for layers, expected in (("none", 0), ("top", 2), ("all", 6)):
        state, _ = train(dsvi(natural_layers=layers), model, problem, 0)
        held = len(state.optimizer.parameters)
        assert len(list(state.module.parameters())) - held == expected


def test_clipping_bounds_gradients():
    problem = real()
    model = component("model", "smdgp", **MODEL)
    inference = dsvi(clip_norm=1e-3)
    state, rng = train(inference, model, problem, 0)
    state, info = inference.step(state, problem.train, rng)
    assert info["grad_norm"] > 1e-3
    norms = [p.grad.norm() for p in state.module.parameters() if p.grad is not None]
    assert torch.stack(norms).norm() == pytest.approx(1e-3, rel=1e-3)
