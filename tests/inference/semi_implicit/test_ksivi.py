"""The kernelised Stein discrepancy of a semi-implicit family: literal form, closed form, and
learning."""

import math

import pytest
import torch
from support.runs.configured import F64, double, draw_normal, generator, normal
from support.targets.affine_families import (
    STD,
    affine,
    clone_parameters,
    flat,
    gradients,
    marginal,
    target,
)
from support.targets.known_targets import GaussianTarget, z_score
from torch.testing import assert_close

from components.inference.semi_implicit.ksivi import stein_pairs

H = 2.0


def closed_form(weight, bias, log_std, model):
    """KSD² of N(b, C) from N(μ, Σ) with k = exp(−‖z − z′‖²/h): (z, z′) tilted by k is a Gaussian
    around (b, b)."""
    C = marginal(weight, log_std)
    A = torch.linalg.inv(C) - model.precision  # ∇log p − ∇log q = A (z − b) − Σ⁻¹(b − μ)
    d = -model.precision @ (bias - model.mean)
    eye = torch.eye(2, dtype=F64)
    precision = torch.block_diag(torch.linalg.inv(C), torch.linalg.inv(C))
    tilted = precision + 2 / H * torch.cat([torch.cat([eye, -eye], 1), torch.cat([-eye, eye], 1)])
    across = torch.linalg.inv(tilted)[:2, 2:]  # cov(z, z′)
    return (0.5 * (torch.logdet(precision) - torch.logdet(tilted))).exp() * (
        d @ d + (A.T @ A * across).sum()
    )


@pytest.mark.parametrize("kernel", ["rbf", "imq"])
@pytest.mark.parametrize("pairs", ["u_statistic", "two_batches"])
def test_pair_sums_match_definition(pairs, kernel):
    z, delta = draw_normal(2, 6, 3)
    square = torch.cdist(z, z).square() / 0.7
    values = {"rbf": (-square).exp(), "imq": (1 + square) ** -0.5}[kernel] * (delta @ delta.T)
    apart = ~torch.eye(6, dtype=torch.bool)
    exact = values[:3, 3:] if pairs == "two_batches" else values[apart]
    assert_close(stein_pairs(z, delta, kernel, 0.7, pairs), exact.mean())


@pytest.mark.parametrize("pairs", ["u_statistic", "two_batches"])
def test_value_and_gradient_are_unbiased(pairs):
    inference, state, rng = affine("ksivi", n_samples=60, pairs=pairs, kernel="rbf", bandwidth=H)
    rows = []
    values = []
    for _ in range(400):
        rows.append(-gradients(inference, state, rng, 1)[0])
    for _ in range(400):
        values.append(inference.step(state, None, rng)[1]["ksd_squared"])
    held = clone_parameters()
    exact = closed_form(*held, target())
    assert abs(z_score(torch.stack(values), exact.detach())) < 4
    expected = flat(torch.autograd.grad(exact, held))
    assert z_score(torch.stack(rows), expected).abs().max() < 4.5


def test_discrepancy_vanishes_at_the_target():
    exact = GaussianTarget(double([0.3, -0.5]), marginal(clone_parameters()[0].detach(), STD.log()))
    inference, state, rng = affine("ksivi", exact, n_samples=100, bandwidth=H)
    values = torch.stack([inference.step(state, None, rng)[1]["ksd_squared"] for _ in range(200)])
    assert abs(z_score(values, 0.0)) < 4
    assert values.std() > 0


def test_median_bandwidth_has_no_gradient():
    g = generator(1)
    z = normal(g, 5, 2).requires_grad_()
    delta = normal(g, 5, 2)
    distances = torch.pdist(z.detach()).square()
    h = float(distances.median() / math.log(5))
    actual, exact = (
        torch.autograd.grad(stein_pairs(z, delta, "imq", width, "u_statistic"), z)[0]
        for width in ("median", h)
    )
    assert torch.allclose(actual, exact)
