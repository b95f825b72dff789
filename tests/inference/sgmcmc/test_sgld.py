"""Langevin chains: stored draws, minibatches, and a mixture from end to end.

Steps and stationary moments are checked in test_sgmcmc_recipe and test_sgmcmc_stationary."""

import torch
from support.runs.configured import component, double
from support.targets.known_targets import GaussianTarget, walk

VARIANCE = double([1.0, 0.25])
TARGET = GaussianTarget(double([0.5, -2.0]), VARIANCE.diag())


def test_burn_in_and_thinning_select_draws():
    schedule = {"schedule": "polynomial", "decay": 0.6, "decay_scale": 10.0}
    sgld = component("inference", "sgld", chains=3, burn_in=4, thinning=3, **schedule)
    path = list(walk(sgld, TARGET, 12))
    numbers = [sgld.posterior(state).n_draws for state, _ in path]
    assert numbers == [len(state.kept) for state, _ in path]
    assert [info["step_size"] for _, info in path] == [sgld.step_size_at(t) for t in range(12)]
    state, info = path[-1]
    kept = sgld.posterior(state)
    assert info["draws"] == 2
    assert torch.equal(kept.draws, torch.stack([path[6][0].theta, path[9][0].theta], 1))
    assert torch.equal(kept.flat.mean(0), kept.mean)
