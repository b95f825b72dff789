"""Samplers of other packages: exact moments of a Gaussian, and counts checked by an independent
counter."""

import copy

import pytest
import torch
from support.runs.configured import component, load
from support.small.small_problems import advance

from components.contracts.costs.counts import Costs, counting
from components.contracts.costs.meters import metered, metered_density
from components.errors import ConfigMismatchError
from runner.execution import checkpoint

# method -> package, steps, options, largest error in standard errors
PEERS = {
    "numpyro_nuts": ("numpyro", 700, {"warmup": 200, "chains": 4}, 4.0),
    "blackjax_nuts": ("blackjax", 700, {"warmup": 200, "chains": 4, "mass": "dense"}, 4.0),
    "blackjax_mclmc": ("blackjax", 1500, {"warmup": 300, "chains": 4}, 4.0),
    "blackjax_pathfinder": ("blackjax", 30, {"elbo_draws": 10}, 9.0),  # approximate method
    "nutpie": ("nutpie", 700, {"warmup": 200, "chains": 4}, 4.0),
    "emcee": ("emcee", 2000, {"warmup": 500, "chains": 20}, 4.0),
}


class Counter:
    """A log density that counts rows evaluated, and rows with a gradient."""

    def __init__(self, log_density):
        self.log_density = log_density
        self.densities = self.gradients = 0

    def __call__(self, theta):
        self.densities += len(theta)
        self.gradients += len(theta) * theta.requires_grad
        return self.log_density(theta)


def begin(name, options):
    """Problem, streams, method and first state, with the counters of the density."""
    pytest.importorskip(PEERS[name][0], reason="pip install 'bayes-runner[peers]'")
    problem, rng = load("gaussian", dim=4, correlation=0.5)
    counter = Counter(problem.log_density)
    problem.log_density = metered_density(counter)
    method = component("inference", name, **options)
    costs = Costs()
    with counting(costs):
        model = metered(component("model", "target_density").build(problem, rng))
        state = method.init(model, problem, rng)
    return problem, rng, method, state, costs, counter


@pytest.mark.slow
@pytest.mark.parametrize("name", PEERS)
def test_peer_has_exact_moments_and_counts(name):
    _, steps, options, largest = PEERS[name]
    problem, rng, method, state, costs, counter = begin(name, options)
    with counting(costs):
        state, info = advance(method, state, problem, rng, 0, steps)
        posterior = method.posterior(state)
    assert (costs.densities, costs.gradients) == (counter.densities, counter.gradients)
    assert costs.densities > steps
    scores = problem.score(posterior, rng)
    assert scores["z_max"] < largest
    assert posterior.n_draws == steps - method.warmup
    if "n_steps" in info:  # chains that wait for others are not evaluated
        gradients_before = counter.gradients
        state, _ = advance(method, state, problem, rng, steps, steps + 10)
        assert counter.gradients - gradients_before == state.stats["n_steps"].rows[-10:].sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", PEERS)
def test_resumed_peer_is_identical(name):
    options = PEERS[name][2] | {"warmup": 6}
    problem, rng, method, state, *_ = begin(name, options)
    whole, _ = advance(method, state, problem, rng, 0, 12)
    problem, rng, method, state, *_ = begin(name, options)
    state, _ = advance(method, state, problem, rng, 0, 8)
    snapshot = checkpoint.snapshot(state, rng.state(), {})
    tensors = snapshot.tensors | snapshot.traces
    problem, rng, method, fresh, costs, counter = begin(name, options)
    restored, streams = checkpoint.restore({"skeleton": snapshot.skeleton}, tensors, fresh)
    rng.restore(streams, 8)
    costs_before = copy.copy(costs)
    with counting(costs):
        repeat, _ = advance(method, restored, problem, rng, 8, 12)
    assert torch.equal(repeat.kept.rows, whole.kept.rows)
    assert costs.densities - costs_before.densities < counter.densities


@pytest.mark.parametrize("name", PEERS)
def test_peer_without_its_package_names_the_extra(name, monkeypatch):
    monkeypatch.setattr("components.errors.find_spec", lambda package: None)
    problem, rng = load("gaussian", dim=4)
    model = component("model", "target_density").build(problem, rng)
    with pytest.raises(ConfigMismatchError, match=r"pip install 'bayes-runner\[peers\]'"):
        component("inference", name).init(model, problem, rng)
