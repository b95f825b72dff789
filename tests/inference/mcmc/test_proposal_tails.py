"""Proposals with lighter tails than the target are detected by the growth of their weights."""

import pytest
import torch
from support.runs.configured import component
from support.targets.known_targets import F64, Tailed, sample_target, white

from components.inference.mcmc.t_mixture import TMixture
from components.inference.mcmc.tails import tail_growth
from components.metrics.importance_weights import pareto_k
from runner.execution.rng import Streams


def growth(target, proposal, **settings):
    method = component("inference", "importance_sampling", proposal=proposal, **settings)
    return tail_growth(method.init(target, None, Streams(0)).fit, target, None)


@pytest.mark.parametrize("dim", [1, 3])
def test_light_tailed_proposal_is_detected(dim):
    draws = sample_target("importance_sampling", Tailed(dim, 1.0), 100, proposal="gaussian")
    assert pareto_k(draws.log_weights) < 0.8  # depends on chance: 0.67 in one dimension
    assert growth(Tailed(dim, 1.0), "gaussian") > 0.9
    assert growth(Tailed(dim, 1.0), "student_t", dof=5.0) > 0.7


@pytest.mark.parametrize("proposal", ["gaussian", "student_t", "mixture"])
@pytest.mark.parametrize("dim", [1, 5, 20])
def test_heavy_tailed_proposal_passes(proposal, dim):
    assert growth(white(dim), proposal) < 0.05


def test_growth_matches_student_tails():
    """w ∝ r^{ν_q − ν} and P_q(r > x) ∝ x^{−ν_q}: k = 1 − ν/ν_q."""
    target = Tailed(2, 3.0)
    fit = TMixture(
        torch.ones(1, dtype=F64), torch.zeros(1, 2, dtype=F64), torch.eye(2, dtype=F64)[None], 6.0
    )
    assert tail_growth(fit, target, None) == pytest.approx(0.5, abs=0.05)
