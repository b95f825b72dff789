"""Starts of chains: redrawn where the density is zero, rejected if all draws have zero density or
it is NaN."""

import pytest
import torch
from support.targets.known_targets import F64, GaussianTarget, sample_target

from components.errors import NumericalError
from components.inference.chains import init_chains
from runner.execution.rng import Streams


class Truncated(GaussianTarget):
    """N(0, 1) on x > ``lower``, and ``outside`` elsewhere."""

    def __init__(self, lower, outside=-torch.inf):
        super().__init__(torch.zeros(1, dtype=F64), torch.eye(1, dtype=F64))
        self.lower = lower
        self.outside = outside
        self.draws = 0

    def sample_prior(self, n, generator):
        self.draws += 1
        return super().sample_prior(n, generator)

    def log_prior(self, theta):
        return torch.where(theta[:, 0] > self.lower, super().log_prior(theta), self.outside)


@pytest.mark.parametrize("gradient", [True, False])
def test_starts_of_zero_density_are_redrawn(gradient):
    target = Truncated(0.5)
    first = GaussianTarget(target.mean, target.covariance).sample_prior(50, Streams(0).init)
    state = init_chains(target, None, "whole", 50, Streams(0), gradient=gradient)
    inside = first > 0.5
    assert (state.theta > 0.5).all()
    assert torch.equal(state.theta[inside], first[inside])  # the other chains do not change
    assert 1 < target.draws < 40


def test_valid_starts_are_drawn_once():
    target = Truncated(-100.0)
    init_chains(target, None, "whole", 50, Streams(0))
    assert target.draws == 1


@pytest.mark.parametrize(
    ("target", "message", "draws"),
    [
        (Truncated(1e3), r"chains \[0, 1\] start, drawn 100 times \(first: -inf\)", 100),
        (Truncated(0.5, torch.nan), "not finite where chains", 1),
    ],
    ids=["zero density", "nan"],
)
def test_invalid_starts_are_refused(target, message, draws):
    with pytest.raises(NumericalError, match=message):
        init_chains(target, None, "whole", 2, Streams(0))
    assert target.draws == draws


@pytest.mark.parametrize(
    ("name", "settings"), [("random_walk_mh", {"warmup": 300}), ("mala", {"warmup": 300})]
)
def test_samplers_match_truncated_normal_mean(name, settings):
    draws = sample_target(name, Truncated(0.5), 700, chains=20, **settings)
    assert (draws.draws > 0.5).all()
    assert draws.draws.mean() == pytest.approx(1.141, abs=0.08)  # φ(½)/(1 − Φ(½))
