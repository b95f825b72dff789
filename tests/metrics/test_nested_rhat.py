"""Nested R̂ of many short chains: near 1 for the exact target, large for stuck superchains."""

import math

import pytest
import torch
from pydantic import ValidationError
from support.runs.configured import component, draw_normal, load

from components.inference.chains import init_chains
from components.metrics import diagnostics
from components.posteriors.draws import Draws
from components.posteriors.mixing import draws_checks

CHAINS = 256
GROUPS = 8
N = 4


def draws(shift, grouped=True):
    """Exact draws of N(0, I_2), each superchain displaced by a different multiple of a shift."""
    z = draw_normal(CHAINS, N, 2)
    places = torch.arange(GROUPS).repeat_interleave(CHAINS // GROUPS).double()
    z[..., 0] += shift * places[:, None]
    start = z[:, 0].view(GROUPS, -1, 2)[:, :1].expand(GROUPS, CHAINS // GROUPS, 2).reshape(-1, 2)
    return Draws(z, start if grouped else z[:, 0], ["a", "b"])


def test_exact_draws_of_short_chains_have_nested_rhat_near_one():
    worst, each = diagnostics.convergence(draws(0.0))
    expected = math.sqrt(1 + GROUPS / (CHAINS * N))
    assert worst["rhat_nested"] == pytest.approx(expected, abs=0.01)
    assert each["rhat_nested"].shape == (2,)
    check = {c.name: c for c in draws_checks(draws(0.0), worst)}["nested R̂ is below 1.05"]
    assert check.passed
    assert "8 superchains of 32 chains" in check.detail


def test_superchains_at_different_points_are_detected():
    worst, _ = diagnostics.convergence(draws(0.5))
    assert worst["rhat_nested"] > 1.1
    failed = [c for c in draws_checks(draws(0.5), worst) if c.passed is False]
    assert "(a), the largest" in failed[0].detail


def test_nested_rhat_is_absent_without_superchains():
    worst, each = diagnostics.convergence(draws(0.0, grouped=False))
    assert "rhat_nested" not in worst
    assert "rhat_nested" not in each


def test_chains_of_a_superchain_share_a_start():
    problem, rng = load("mixture_of_gaussians_2d")
    model = component("model", "target_density").build(problem, rng)
    method = component("inference", "hmc", chains=8, superchains=4)
    state = method.init(model, problem, rng)
    pairs = state.start.view(4, 2, -1)
    assert torch.equal(pairs[:, 0], pairs[:, 1])
    assert len(pairs[:, 0].unique(dim=0)) == 4
    assert diagnostics.count_superchains(state.start) == 4
    first = load("mixture_of_gaussians_2d")
    second = load("mixture_of_gaussians_2d")
    plain = init_chains(model, first[0], "whole", 8, first[1])
    null = component("inference", "random_walk_mh", chains=8).init(model, second[0], second[1])
    assert torch.equal(plain.start, null.start)
    assert diagnostics.count_superchains(plain.start) is None


@pytest.mark.parametrize(
    "name", ["nuts", "mala", "gibbs", "sgld", "psgld", "sghmc", "recipe", "santa", "adam_noise"]
)
def test_invalid_divisor_names_the_key(name):
    assert component("inference", name, chains=8, superchains=2).superchains == 2
    for wrong in (1, 3, 8):
        with pytest.raises(ValidationError, match=f"superchains: {wrong} must be at least 2 and"):
            component("inference", name, chains=8, superchains=wrong)
