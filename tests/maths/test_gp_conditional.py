"""The whitened batched conditional, compared with unwhitened loops over eqs. (3.5) to (3.9) and
with the exact GP."""

import itertools
from typing import get_args

import pytest
import torch
from support.runs.configured import F64, generator
from torch.testing import assert_close

from components.errors import NumericalError
from components.maths.cholesky import jittered_cholesky
from components.maths.kernels import PRODUCT_SHAPES, Shape, kernel
from components.maths.sparse_gp import sparse_conditional

JITTER = 1e-6


def draw_inputs(G=2, Q=2, M=4, N=5, D=3, common=True, ard=True):
    g = generator(1)

    def normal(*shape):
        return torch.randn(*shape, generator=g, dtype=F64)

    x = normal(N, D) if common else normal(G, N, D)
    C = normal(G, Q, M, M).tril()
    return x, normal(G, M, D), 0.5 + normal(G, D if ard else 1).abs(), normal(G, Q, M), C


def literal(x, Z, lengthscale, m, C, shape, jitter=JITTER):
    """Mean and variance [N] of one process at its inputs, unwhitened, by explicit inverses."""
    ones = torch.ones((), dtype=x.dtype)
    Kzz = kernel(Z, Z, lengthscale, ones, shape)
    # eq. (3.5)
    if shape not in PRODUCT_SHAPES:
        Kzz = Kzz - torch.diag(Kzz.diagonal()) + torch.eye(len(Z), dtype=x.dtype)
    Kzz = Kzz + jitter * torch.eye(len(Z), dtype=x.dtype)
    Kzx = kernel(Z, x, lengthscale, ones, shape)
    alpha = torch.linalg.inv(Kzz) @ Kzx  # eq. (3.9)
    L = torch.linalg.cholesky(Kzz)
    # the whitened q(v) as a q(u)
    mu_u = L @ m
    S_u = L @ C @ C.T @ L.T
    mean = alpha.T @ mu_u  # eq. (3.7), averaged over q(u)
    prior = kernel(x, x, lengthscale, ones, shape)
    bar = prior - alpha.T @ Kzz @ alpha  # eq. (3.8)
    return mean, (bar + alpha.T @ S_u @ alpha).diagonal()  # eq. (2.65)


@pytest.mark.parametrize("shape", get_args(Shape))
@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize("ard", [True, False])
def test_conditional_equals_equations_3_5_to_3_9(shape, common, ard):
    x, Z, lengthscale, m, C = draw_inputs(common=common, ard=ard)
    mean, variance, factors = sparse_conditional(x, Z, lengthscale**-2, m, C, shape, JITTER)
    assert factors.jitter == JITTER
    # Matérn-1/2 depends on √r², and r² as a difference of squares is accurate to 1e-15; likewise
    # cos θ in ArcCosine-0. A linear K_zz has rank 3 of 4.
    tolerance = (
        1e-6 if shape in ("matern12", "arc_cosine0", "arc_cosine0_bias", "linear") else 1e-10
    )
    for g, q in itertools.product(range(2), range(2)):
        inputs = x if common else x[g]
        exact = literal(inputs, Z[g], lengthscale[g], m[g, q], C[g, q], shape)
        ours = mean[g, q], variance[g, q]
        assert_close(ours, exact, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("Q", [1, 3])
@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize("ard", [True, False])
def test_manual_gradients_equal_finite_differences(Q, common, ard):
    inputs = [t.requires_grad_() for t in draw_inputs(Q=Q, M=3, N=3, common=common, ard=ard)]

    def moments(x, Z, lengthscale, m, C):
        mean, variance, factors = sparse_conditional(
            x, Z, lengthscale**-2, m, C.tril(), "matern52", 1e-3
        )
        return mean, variance, factors.kl

    assert torch.autograd.gradcheck(moments, inputs, atol=1e-6, fast_mode=True)


def compute_unwhitened(x, Z, lengthscale, m, C, shape, jitter):
    """Moments and divergence of all processes in a short form that autograd differentiates."""
    ones = torch.ones(len(Z), dtype=x.dtype)
    eye = torch.eye(Z.shape[1], dtype=x.dtype)
    Kzz = kernel(Z, Z, lengthscale, ones, shape) * (1 - eye) + (1 + jitter) * eye
    Kzx = kernel(Z, x.expand(len(Z), *x.shape[-2:]), lengthscale, ones, shape)
    A = torch.linalg.inv(torch.linalg.cholesky(Kzz)) @ Kzx
    projected = C.mT @ A[:, None]
    variance = 1 - A.square().sum(1)[:, None] + projected.square().sum(2)
    kl = 0.5 * (C.square().sum() + m.square().sum() - m.numel())
    return m @ A, variance, kl - C.diagonal(dim1=-2, dim2=-1).abs().log().sum()


@pytest.mark.parametrize("Q", [1, 2])
@pytest.mark.parametrize("common", [True, False])
@pytest.mark.parametrize("ard", [True, False])
def test_gradients_by_blocks_equal_autograd(Q, common, ard):
    """Products use blocks if there are at least 64 inducing inputs."""
    inputs = [t.requires_grad_() for t in draw_inputs(Q=Q, M=75, N=40, common=common, ard=ard)]
    x, Z, lengthscale, m, C = inputs
    mean, variance, factors = sparse_conditional(x, Z, lengthscale**-2, m, C, "matern52", 1e-3)
    ours = mean, variance, factors.kl
    theirs = compute_unwhitened(*inputs, "matern52", 1e-3)
    assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    weights = [torch.cos(torch.arange(v.numel(), dtype=v.dtype)).view_as(v) for v in ours]

    def gradients(values):
        total = sum((w * v).sum() for w, v in zip(weights, values, strict=True))
        return torch.autograd.grad(total, inputs)

    for a, b in zip(gradients(ours), gradients(theirs), strict=True):
        a, b = (v.tril() if v.dim() == 4 else v for v in (a, b))  # C is lower triangular
        assert_close(a, b, rtol=1e-7, atol=1e-7)


def test_wrong_conditional_fails_the_comparison():
    """The variance without its S term differs from the literal one by far more than the tolerance
    above."""
    x, Z, lengthscale, m, C = draw_inputs()
    _, variance, _ = sparse_conditional(x, Z, lengthscale**-2, m, 0 * C, "matern52", JITTER)
    _, v = literal(x, Z[0], lengthscale[0], m[0, 0], C[0, 0], "matern52")
    assert (variance[0, 0] - v).abs().min() > 1e-3


def test_float32_agrees_with_float64():
    x, Z, lengthscale, m, C = draw_inputs(M=20, N=30)
    args = [x, Z, lengthscale**-2, m, C]
    exact = sparse_conditional(*args, "matern52", 1e-4)
    single = sparse_conditional(*(a.float() for a in args), "matern52", 1e-4)
    for a, b in zip(exact[:2], single[:2], strict=True):
        assert b.dtype == torch.float32
        assert ((a - b.double()).abs() / (1 + a.abs())).max() < 1e-3


def test_jitter_rises_as_needed_and_is_reported():
    good = torch.eye(3, dtype=F64).expand(2, 3, 3)
    assert jittered_cholesky(good, 1e-6)[1] == 1e-6
    singular = torch.ones(2, 3, 3, dtype=F64) - 3e-5 * torch.eye(3, dtype=F64)
    L, used = jittered_cholesky(singular, 1e-6)
    assert used == pytest.approx(1e-4)
    assert torch.allclose(L @ L.mT, singular + 1e-4 * torch.eye(3), atol=1e-12)


def test_failed_factorisation_names_quantity_and_key():
    with pytest.raises(
        NumericalError,
        match=r"K_zz of top .* jitter 0.01; raise model.jitter",
    ):
        jittered_cholesky(-torch.eye(3), 1e-6, "K_zz of top")
    with pytest.raises(NumericalError, match="K_zz of top is not finite"):
        jittered_cholesky(torch.full((3, 3), torch.nan), 1e-6, "K_zz of top")
