"""Boustati (2021), theorem B.1.1 and (B.6): the convergence rate with an efficient control variate,
from exact moments and from the registered estimators on a line."""

import pytest
import torch
from support.runs.configured import F64, component, double
from support.small.line_model import line_gaussian, line_rows

from runner.execution.rng import Streams

A = torch.diag(double([0.5, 1.0, 2.0]))  # f(ε, θ) = ½ (θ + ε)ᵀ A (θ + ε), θ* = 0
H = 0.5
L = 2.0
D = 3
START = double([1.0, -2.0, 0.5])


def squares(eta, s, steps, control):
    """E‖θ_t‖² of (B.4) for t = 0 … steps, by its second moments: ∇f − c = Aθ − s‖θ‖ε, or Aθ + Aε
    without a control variate."""
    S = torch.outer(START, START)
    keep = torch.eye(D, dtype=F64) - eta * A
    out = [S.trace()]
    for _ in range(steps):
        noise = s**2 * S.trace() * torch.eye(D, dtype=F64) if control else A @ A
        S = keep @ S @ keep + eta**2 * noise
        out.append(S.trace())
    return torch.stack(out)


@pytest.mark.parametrize("s", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_theorem_b_1_1_bounds_error(s, share):
    """Assumption 4 holds with M = 2 s² D/H: E‖∇f(ε, θ*) − c‖² = s² D ‖θ‖² ≤ M E[f(θ) − f(θ*)]."""
    M = 2 * s**2 * D / H
    eta = share / (2 * L + M)
    c = 1 - eta * H * (1 - eta * (2 * L + M))
    t = torch.arange(401, dtype=F64)
    squared = squares(eta, s, 400, control=True)
    assert (squared <= c**t * squared[0] * (1 + 1e-12)).all()
    if share < 1:
        assert squared[-1] < 1e-6
        floor = squares(eta, s, 400, control=False)  # assumption 4 fails: M would be infinite
        assert floor[-1] > c**400 * squared[0]
        assert floor[-1] > 0.01


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_equation_b_6_bounds_error(share):
    """Without assumption 4, M̄ = E‖∇f(ε, θ*)‖² = tr A² for no control variate."""
    eta = share / (2 * L)
    c = 1 - eta * H * (1 - 2 * eta * L)
    t = torch.arange(401, dtype=F64)
    bound = c**t * START.square().sum() + 2 * eta**2 * (A @ A).trace() * (1 - c**t) / (1 - c)
    assert (squares(eta, 0.0, 400, control=False) <= bound * (1 + 1e-12)).all()


@pytest.mark.parametrize(("name", "linear"), [("taylor_cv", True), ("reparam", False)])
def test_estimators_converge_at_their_rate(name, linear):
    """The mean of q under (B.4): the Taylor control variate is exact for a line, so that M = 0."""
    data = line_rows()
    X = torch.cat([torch.ones_like(data.x), data.x], 1)
    curvature = X.T @ X + torch.eye(2, dtype=F64)
    best = torch.linalg.solve(curvature, X.T @ data.y[:, 0])
    eigenvalues = torch.linalg.eigvalsh(curvature)
    eta = 0.25 / float(eigenvalues[-1])
    c = 1 - eta * float(eigenvalues[0]) * (1 - 2 * eta * float(eigenvalues[-1]))
    module = line_gaussian(False, "shared")
    estimator = component("gradient", name)
    rng = Streams(0)
    first = float((module.mean.detach() - best).square().sum())
    state = estimator.init(module, rng)
    within = []
    for t in range(1, 61):
        gradients, _, state = estimator.estimate(module, data, rng, state)
        module.mean.data.add_(eta * gradients[0])
        within.append(float((module.mean.detach() - best).square().sum()) <= c**t * first)
    assert all(within) == linear
