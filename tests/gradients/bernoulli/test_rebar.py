"""REBAR against an enumerated gradient, its control variate, and what it learns."""

from __future__ import annotations

import copy

import pytest
import torch
from configured import component
from contract.only import only
from small_bernoulli import binary_rows, enumerated_elbo, flat, holm_p, small_dvae, z_scores

from components.contracts.capabilities import BernoulliLayers
from components.contracts.problems import Rows
from components.gradients.bernoulli.layers import logistic
from runner.run.checkpoint import pack, unpack
from runner.run.execute import run
from runner.run.rng import Streams
from runner.run.signals import Pruned


@pytest.mark.parametrize("adapt", ["static", "dynamic"])
@pytest.mark.parametrize("layers", [1, 2])
def test_unbiased(adapt, layers):
    batch = binary_rows(n=2).train
    module = small_dvae(binary_rows(n=2), layers)
    estimator = component("gradient", "rebar", adapt=adapt, lr=0.02)
    assert estimator.unbiased
    z = z_scores(estimator, module, Rows(batch.x, 3.0), 100_000)
    assert holm_p(z) > 0.001, f"largest |z| {float(z.abs().max()):.1f}"


def test_logistic_noise_keeps_from_the_ends():
    assert bool(logistic(torch.tensor([0.0, 0.5, 1 - 1e-8])).isfinite().all())


def drawn(estimator, state, n: int = 150) -> torch.Tensor:
    """Summed variance of ``n`` estimates by the guide's parameters, from one state."""
    problem, rng = binary_rows(n=6), Streams(3)
    module = small_dvae(problem)
    names = [key for key, _ in module.named_parameters()]
    found = []
    for _ in range(n):
        gradients, _, _ = estimator.estimate(module, problem.train, rng, state)
        found.append(flat(g for key, g in zip(names, gradients, strict=True) if key.startswith("down")))
    return torch.stack(found).var(0).sum()


def test_the_control_variate_and_its_adaptation_reduce_the_variance():
    problem, rng = binary_rows(n=6), Streams(0)
    module = small_dvae(problem)
    estimator = component("gradient", "rebar", coefficient=0.2, temperature=2.0, lr=0.05)
    first = state = estimator.init(module, rng)
    before = copy.deepcopy(first.relaxation.state_dict())
    for _ in range(80):
        state = estimator.estimate(module, problem.train, rng, state)[2]
    assert all(torch.equal(first.relaxation.state_dict()[key], value) for key, value in before.items())
    without = component("gradient", "rebar", adapt="static", coefficient=0.0)
    plain = drawn(without, without.init(module, rng))
    assert float(drawn(estimator, first)) < 0.9 * float(plain)
    assert float(drawn(estimator, state)) < 0.85 * float(drawn(estimator, first))


def test_what_it_learnt_is_kept_and_the_bound_is_among_its_terms():
    problem, rng = binary_rows(n=2), Streams(0)
    module = small_dvae(problem)
    stub = only(module, BernoulliLayers)  # it asks for nothing else
    estimator = component("gradient", "rebar", n_samples=20_000)
    _, terms, state = estimator.estimate(stub, problem.train, rng, estimator.init(stub, rng))
    exact = float(enumerated_elbo(module, problem.train).detach())
    assert float(terms["elbo"]) == pytest.approx(exact, abs=0.08)
    estimator, tensors = component("gradient", "rebar"), {}
    packed = pack(state, tensors, "gradient")
    again = unpack(packed, tensors, estimator.init(stub, rng))
    runs = []
    for kept in (state, again):
        own = Streams(5)
        for _ in range(3):
            gradients, _, kept = estimator.estimate(module, problem.train, own, kept)
        runs.append(gradients)
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(make_job, tmp_path):
    smoke = ["+experiment=dvae_digits", "smoke=true", "inference.gradient={name: rebar, lr: 0.05}", "steps=12"]
    _, whole = run(make_job(*smoke))

    def stop(step, _):
        raise Pruned(f"at {step}")

    often = ["eval_every=6", "checkpoint_every=5", f"output_dir={tmp_path / 'stopped'}"]
    stopped = make_job(*smoke, *often)
    with pytest.raises(Pruned):
        run(stopped, stop)
    _, resumed = run(stopped)
    assert resumed == whole
