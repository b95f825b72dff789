"""The whitened sparse conditional of a batch of Gaussian processes and its divergence from the
prior, with explicit gradients.

G groups; the Q processes of a group share inputs, inducing inputs Z [M, D] and correlation κ, but
each has its own q(v) = N(m, S), S = C Cᵀ, over whitened values v = L⁻¹ u, L Lᵀ = κ(Z, Z) + j I. The
prior variance is 1:

    A = L⁻¹ κ(Z, X),   B = L⁻ᵀ (S − I) A,   μ = Aᵀ m,   σ² = 1 + Σₘ κ(Z, X) ∘ B       (= 1 − Aᵀ A + Aᵀ S A, diagonal)

    Σ KL[N(m, S) ‖ N(0, I)] = ½ Σ (C² + m²) − Σ ln |Cᵢᵢ| − ½ Q M

This is one autograd function, because recorded operations would cost about twice as much: the
forward and reverse passes need three products [M, M]·[M, N] and no triangular solve of that size;
∂σ²/∂κ(Z, X) is 2 B without further products.  Product kernels, with prior variance κ(x, x) instead
of 1, use autograd."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from components.maths.cholesky import (
    HALF_OF_L_U,
    HALF_OF_X_L,
    HALF_OF_X_Y,
    L_L,
    L_X,
    U_L,
    U_X,
    block_product,
    inverse_of_lower,
    jittered_cholesky,
    symmetric_product,
)
from components.maths.divergences.gaussian_kl import kl_whitened
from components.maths.kernels import (
    PRODUCT_SHAPES,
    Shape,
    correlation,
    lift_centres,
    lift_inputs,
    prior_variance,
    product_kernel,
)


@dataclass(frozen=True)
class LayerTerms:
    """By-products of computing the moments of a layer."""

    kl: Tensor  # Σ KL[q(v) ‖ N(0, I)] over its processes, in nats
    jitter: float  # jitter that K_zz needed


LayerMoments = tuple[Tensor, Tensor, LayerTerms]  # mean and variance [G, Q, N]


class _SparseConditional(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, Z, w, m, C, settings):
        """x [N, D] or [G, N, D]; Z [G, M, D]; w [G, 1 or D]; m [G, Q, M]; C [G, Q, M, M]."""
        shape, jitter, name, slopes = settings
        G, Q, M = m.shape
        isotropic = w.shape[-1] == 1
        z_centres = lift_centres(Z, w)
        z_inputs = lift_inputs(Z, isotropic)
        x_inputs = lift_inputs(x, isotropic)
        kzz, szz = correlation(torch.bmm(z_centres, z_inputs.mT), shape, slopes)
        torch.linalg.diagonal(kzz).fill_(1.0)  # exactly 1, for any rounding of r²
        L, used = jittered_cholesky(kzz, jitter, f"K_zz of {name}")
        Linv = inverse_of_lower(L)
        kzx, szx = correlation(torch.matmul(z_centres, x_inputs.mT), shape, slopes)
        A = block_product(Linv, kzx, L_X)  # [G, M, N]
        factor = C.reshape(G * Q, M, M)
        R = symmetric_product(factor, factor.mT, HALF_OF_L_U)
        torch.linalg.diagonal(R).sub_(1.0)  # S − I  [G · Q, M, M]
        projected = block_product(_repeat(Linv, Q).mT, R, U_X)  # L⁻ᵀ (S − I)
        B = torch.bmm(projected.view(G, Q * M, M), A).view(G, Q, M, -1)
        mean = torch.bmm(m, A)  # [G, Q, N]
        variance = (kzx.unsqueeze(1) * B).sum(2).add_(1.0)
        if slopes:
            inputs = (z_centres, z_inputs, x_inputs)
            ctx.save_for_backward(Z, w, m, C, *inputs, *(R, Linv, A, B, szz, szx))
        ctx.set_materialize_grads(False)
        return mean, variance, kl_whitened(m, C), used

    @staticmethod
    @once_differentiable
    def backward(ctx, g_mean, g_variance, g_kl, _):
        Z, w, m, C, z_centres, z_inputs, x_inputs, R, Linv, A, B, szz, szx = ctx.saved_tensors
        (G, Q, M), D = m.shape, Z.shape[-1]
        g_mean, g_variance = (
            A.new_zeros(G, Q, A.shape[-1]) if g is None else g for g in (g_mean, g_variance)
        )
        g_v = (2.0 * g_variance).contiguous().unsqueeze(2)  # [G, Q, 1, N]
        dkzx = _sum_processes(B * g_v)
        dkzx.baddbmm_(torch.bmm(Linv.mT, m.mT), g_mean)
        dm = torch.bmm(g_mean, A.mT)  # [G, Q, M]
        weighted = (A.unsqueeze(1) * g_v).view(G, Q * M, -1)
        multiply = symmetric_product if Q == 1 else torch.bmm
        W = multiply(weighted, A.mT).view(G * Q, M, M)  # 2 ∂/∂S
        dC = block_product(W, C.reshape(G * Q, M, M), HALF_OF_X_L).tril_().view(G, Q, M, M)
        # (∂/∂A) Aᵀ, from terms computed above: its lower half is −(Lᵀ ∂/∂L), the seed of the
        # Cholesky's reverse pass.
        P = _sum_processes(block_product(R, W, HALF_OF_X_Y).view(G, Q, M, M))
        P = P.baddbmm_(m.mT, dm).tril_()
        torch.linalg.diagonal(P).mul_(0.5)
        dkzz = block_product(Linv.mT, block_product(P, Linv, L_L), U_L)
        dr2zz = (dkzz + dkzz.mT).mul_(-0.5).mul_(szz)
        torch.linalg.diagonal(dr2zz).zero_()  # κ(z, z) = 1 for every Z
        dr2zx = dkzx.mul_(szx)
        # r² = z_centres · inputs = Σ w z² − 2 Σ w z x + Σ w x², separated into its three columns;
        # products with few columns are computed transposed, in half of the time
        if x_inputs.dim() == 2:
            by_x = (x_inputs.mT @ dr2zx.view(G * M, -1).mT).mT.view(G, M, -1)
        else:
            by_x = torch.bmm(x_inputs.mT, dr2zx.mT).mT
        by_z = torch.bmm(z_inputs.mT, dr2zz).mT  # symmetric in Z: both arguments change
        both = by_x + by_z
        constants = both[..., D : D + 1]
        products = both[..., :D]
        dw = (Z * (Z * constants - 2 * products)).sum(1)
        dw = (dw.sum(-1, keepdim=True) if w.shape[-1] == 1 else dw) + both[..., D + 1 :].sum(1)
        total = both + by_z
        dZ = 2 * w.unsqueeze(1) * (Z * total[..., D : D + 1] - total[..., :D])
        dx = None
        if ctx.needs_input_grad[0]:
            if x_inputs.dim() == 2:
                by_centres = (z_centres.view(G * M, -1).mT @ dr2zx.view(G * M, -1)).mT
            else:
                by_centres = torch.bmm(z_centres.mT, dr2zx).mT
            dx = torch.addcmul(
                by_centres[..., :D], x_inputs[..., :D], by_centres[..., D + 1 :], value=2.0
            )
        if g_kl is not None:
            dm = torch.addcmul(dm, g_kl, m)
            dC.addcmul_(g_kl, C)
            torch.linalg.diagonal(dC).sub_(g_kl / torch.linalg.diagonal(C))
        return dx, dZ, dw, dm, dC, None


def _repeat(matrices: Tensor, Q: int) -> Tensor:
    """[G, M, M] -> [G · Q, M, M], each for the Q processes of its group."""
    return matrices if Q == 1 else matrices.repeat_interleave(Q, 0)


def _sum_processes(terms: Tensor) -> Tensor:
    """[G, Q, M, N] -> [G, M, N]."""
    return terms.squeeze(1) if terms.shape[1] == 1 else terms.sum(1)


class Whitened(NamedTuple):
    """Inducing inputs, weights and q(v) of G groups, as in ``sparse_conditional``."""

    Z: Tensor
    w: Tensor
    m: Tensor
    C: Tensor


def _product_conditional(
    q: Whitened, x: Tensor, shape: Shape, jitter: float, name: str
) -> LayerMoments:
    """μ = Aᵀ m and σ² = κ(x, x) − Aᵀ A + Aᵀ S A for a product kernel."""
    kzz = product_kernel(q.Z, q.Z, q.w, shape)
    L, used = jittered_cholesky(kzz, jitter, f"K_zz of {name}")
    A = torch.linalg.solve_triangular(L, product_kernel(q.Z, x, q.w, shape), upper=False)
    projected = torch.matmul(q.C.mT, A.unsqueeze(1))  # Cᵀ A [G, Q, M, N]
    prior = prior_variance(x, q.w, shape) - A.square().sum(-2)  # [G, N]
    variance = prior.unsqueeze(1) + projected.square().sum(-2)
    return torch.bmm(q.m, A), variance, LayerTerms(kl_whitened(q.m, q.C), used)


def sparse_conditional(
    x: Tensor,
    Z: Tensor,
    w: Tensor,
    m: Tensor,
    C: Tensor,
    shape: Shape,
    jitter: float,
    name: str = "the layer",
) -> LayerMoments:
    """Mean and variance of q(f(x)) for prior variance κ(x, x), with divergence and jitter.

    x [N, D] (the same for every group) or [G, N, D], Z [G, M, D], w = 1/ℓ² [G, 1 or D], m [G, Q,
    M], C lower triangular [G, Q, M, M] -> mean and variance [G, Q, N].  Differentiable once in all
    of them.

    Raises:
        NumericalError: K_zz has no Cholesky factor even with jitter · 10⁴.

    Source: Boustati (2021), eqs. (2.64), (2.65), (3.5) to (3.9) and (3.12); Salimbeni and
    Deisenroth (2017), whitened."""
    if shape in PRODUCT_SHAPES:
        return _product_conditional(Whitened(Z, w, m, C.tril()), x, shape, jitter, name)
    # checked here because gradients are disabled inside the function
    slopes = torch.is_grad_enabled()
    settings = (shape, jitter, name, slopes)
    mean, variance, kl, used = _SparseConditional.apply(x, Z, w, m, C, settings)
    return mean, variance, LayerTerms(kl, used)
