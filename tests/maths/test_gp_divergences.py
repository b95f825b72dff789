"""Gaussian divergences compared with their definitions, and natural gradients with autograd."""

import math

import pytest
import torch
from support.runs.configured import F64, generator, normal, uniform
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from components.errors import NumericalError
from components.inference.variational.dsvi import natural_step
from components.maths.divergences.gaussian_kl import kl_diagonal, kl_gaussian, kl_whitened


def draw_gaussian(*lead, M=4, seed=0):
    g = generator(seed)
    m = normal(g, *lead, M)
    below = 0.3 * normal(g, *lead, M, M).tril(-1)
    return m, below + torch.diag_embed(0.5 + uniform(g, *lead, M))


def test_whitened_kl_equals_torch():
    m, C = draw_gaussian(2, 3)
    prior = MultivariateNormal(torch.zeros(4, dtype=F64), torch.eye(4, dtype=F64))
    exact = kl_divergence(MultivariateNormal(m, scale_tril=C), prior).sum()
    assert kl_whitened(m, C) == pytest.approx(float(exact), rel=1e-12)
    # the sign of a diagonal element changes neither S nor the divergence
    C[..., 0, 0] *= -1
    assert kl_whitened(m, C) == pytest.approx(float(exact), rel=1e-12)


def test_general_and_diagonal_kl_agree_with_torch():
    m, C = draw_gaussian(3)
    m0, C0 = draw_gaussian(3, seed=1)
    exact = kl_divergence(
        MultivariateNormal(m, scale_tril=C), MultivariateNormal(m0, scale_tril=C0)
    )
    assert torch.allclose(kl_gaussian(m, C, m0, C0), exact)
    v = C.diagonal(dim1=-2, dim2=-1) ** 2
    v0 = C0.diagonal(dim1=-2, dim2=-1) ** 2
    assert torch.allclose(
        kl_diagonal(m, v, m0, v0), kl_divergence(Normal(m, v.sqrt()), Normal(m0, v0.sqrt())).sum()
    )
    assert torch.allclose(
        kl_diagonal(m, v, 0.0, 2.0), kl_divergence(Normal(m, v.sqrt()), Normal(0.0, 2.0**0.5)).sum()
    )


def conjugate(m, C, A, y, s2):
    """Negative bound of y = A v + N(0, s²), v ~ N(0, I)."""
    S = C @ C.mT
    fit = ((y - A @ m) ** 2).sum() + torch.trace(A @ S @ A.T)
    return 0.5 * (fit / s2 + len(y) * math.log(2 * math.pi * s2)) + kl_whitened(m, C)


def test_full_step_reaches_a_conjugate_posterior():
    m, C = draw_gaussian()
    g = generator(2)
    A = normal(g, 7, 4)
    y = normal(g, 7)
    s2 = 0.3
    m = torch.nn.Parameter(m)
    C = torch.nn.Parameter(C)
    conjugate(m, C, A, y, s2).backward()
    C.grad.tril_()
    natural_step(m, C, 1.0)
    S = torch.linalg.inv(torch.eye(4, dtype=F64) + A.T @ A / s2)
    assert torch.allclose(C @ C.T, S, atol=1e-10)
    assert torch.allclose(m, S @ A.T @ y / s2, atol=1e-10)
    evidence = MultivariateNormal(
        torch.zeros(7, dtype=F64), A @ A.T + s2 * torch.eye(7, dtype=F64)
    ).log_prob(y)
    assert -float(conjugate(m, C, A, y, s2).detach()) == pytest.approx(float(evidence), rel=1e-10)


def test_step_that_leaves_the_cone_is_halved():
    """∂ELBO/∂S = +1.2 I makes the precision I − 2.4 γ I: negative at γ = 1, positive for γ ≤
    1/4."""
    m = torch.nn.Parameter(torch.zeros(2))
    C = torch.nn.Parameter(torch.eye(2))
    m.grad = torch.zeros(2)
    C.grad = -2 * 1.2 * torch.eye(2)
    natural_step(m, C, 1.0)
    assert torch.allclose(C @ C.T, torch.eye(2) / (1 - 2.4 * 0.25))


def test_failed_step_names_the_key():
    m = torch.nn.Parameter(torch.zeros(2))
    C = torch.nn.Parameter(torch.eye(2))
    m.grad = torch.zeros(2)
    C.grad = torch.full((2, 2), torch.nan)
    with pytest.raises(NumericalError, match="natural_gamma"):
        natural_step(m, C, 1.0)
