"""The evidence by importance sampling, compared with closed forms and quadrature."""

import math

import numpy as np
import pytest
import torch
from support.runs.configured import component, load
from support.small.small_problems import real
from support.targets.known_targets import F64

from components.inference.log_joint import log_joint
from components.inference.variational.laboratory.evidence import log_evidence
from runner.execution.rng import Streams


def estimate_evidence(model, problem, draws, seeds):
    centre = torch.zeros(model.dim, dtype=F64)
    return [
        float(log_evidence(model, problem.train, centre, draws, rng.noise))
        for rng in map(Streams, range(seeds))
    ]


def test_linear_regression_evidence_is_exact():
    """The Laplace approximation is the posterior."""
    problem = real(n=24, n_tasks=1, missing=0.0)
    model = component("model", "linear_regression", noise=0.25).build(problem, Streams(0))
    exact = float(model.log_evidence(problem.train))
    assert estimate_evidence(model, problem, 200, 3) == pytest.approx([exact] * 3, abs=1e-8)


def test_logistic_regression_evidence_matches_quadrature():
    problem, rng = load("logistic_synthetic", n_inputs=1)
    model = component("model", "logistic_regression", intercept_scale=1.0).build(problem, rng)
    grid = torch.linspace(-9, 9, 400, dtype=F64)
    theta = torch.cartesian_prod(grid, grid)
    joint = torch.cat([log_joint(model, part, problem.train) for part in theta.split(20_000)])
    exact = float(joint.logsumexp(0)) + 2 * math.log(18 / 399)
    ratios = np.exp(np.array(estimate_evidence(model, problem, 500, 5)) - exact)
    assert ratios.mean() == pytest.approx(1, abs=5 * ratios.std() / 5**0.5 + 1e-3)
    assert ratios.std() < 0.05
