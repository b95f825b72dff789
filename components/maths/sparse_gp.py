"""The whitened sparse conditional of a batch of Gaussian processes, with its gradient by hand.

G groups; the Q processes of a group share inputs, inducing inputs Z [M, D] and correlation κ, each has its own
q(v) = N(m, S), S = C Cᵀ, over whitened values v = L⁻¹ u, L Lᵀ = κ(Z, Z) + j I.  Everything is of unit prior variance:

    A = L⁻¹ κ(Z, X),   μ = Aᵀ m,   σ² = 1 + Σₘ A ∘ (S − I) A            (= 1 − Aᵀ A + Aᵀ S A, diagonal)

One autograd function, because what autograd would record costs about twice as much: forward and reverse pass below
need four products [M, M]·[M, N] and no triangular solve of that size.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from components.maths.cholesky import jittered_cholesky, triangular_inverse
from components.maths.kernels import Shape, correlation, lift_centres, lift_inputs


class _SparseConditional(torch.autograd.Function):
    @staticmethod
    def forward(ctx, z_centres, z_inputs, x_inputs, m, C, shape, jitter, name, slopes):
        """z_centres, z_inputs [G, M, E]; x_inputs [N, E] or [G, N, E]; m [G, Q, M]; C [G, Q, M, M]."""
        G, Q, M = m.shape
        kzz, szz = correlation(torch.bmm(z_centres, z_inputs.mT), shape, slopes)
        kzz.diagonal(dim1=-2, dim2=-1).fill_(1.0)  # exactly, whatever the rounding of r²
        L, used = jittered_cholesky(kzz, jitter, f"K_zz of {name}")
        Linv = triangular_inverse(L)
        if x_inputs.dim() == 2:
            r2 = (z_centres.reshape(G * M, -1) @ x_inputs.T).view(G, M, -1)
        else:
            r2 = torch.bmm(z_centres, x_inputs.mT)
        kzx, szx = correlation(r2, shape, slopes)
        A = torch.bmm(Linv, kzx)  # [G, M, N]
        R = torch.matmul(C, C.mT)
        R.diagonal(dim1=-2, dim2=-1).sub_(1.0)  # S − I  [G, Q, M, M]
        RA = torch.bmm(R.view(G, Q * M, M), A).view(G, Q, M, -1)
        mean = torch.bmm(m, A)  # [G, Q, N]
        variance = (A.unsqueeze(1) * RA).sum(2).add_(1.0)
        if slopes:
            ctx.save_for_backward(z_centres, z_inputs, x_inputs, m, C, R, Linv, A, RA, szz, szx)
        return mean, variance, used

    @staticmethod
    @once_differentiable
    def backward(ctx, g_mean, g_variance, _):
        z_centres, z_inputs, x_inputs, m, C, R, Linv, A, RA, szz, szx = ctx.saved_tensors
        G, Q, M = m.shape
        g_v = g_variance.unsqueeze(2)  # [G, Q, 1, N]
        dA = torch.baddbmm((RA * (2 * g_v)).sum(1) if Q > 1 else (RA * (2 * g_v)).squeeze(1), m.mT, g_mean)
        dm = torch.bmm(g_mean, A.mT)  # [G, Q, M]
        W = torch.bmm((A.unsqueeze(1) * g_v).view(G, Q * M, -1), A.mT).view(G, Q, M, M)  # ∂/∂S
        dC = torch.matmul(W, C).mul_(2.0).tril_()
        # dA Aᵀ, from what is already there: its lower half is −(Lᵀ ∂/∂L), the seed of the Cholesky's reverse pass.
        P = torch.baddbmm(torch.matmul(R, W).sum(1).mul_(2.0), m.mT, dm).tril_()
        P.diagonal(dim1=-2, dim2=-1).mul_(0.5)
        dkzz = torch.bmm(torch.bmm(Linv.mT, P), Linv)
        dr2zz = (dkzz + dkzz.mT).mul_(-0.5).mul_(szz)
        dr2zz.diagonal(dim1=-2, dim2=-1).zero_()  # κ(z, z) = 1 whatever Z is
        dr2zx = torch.bmm(Linv.mT, dA).mul_(szx)
        dz_inputs = torch.bmm(dr2zz.mT, z_centres)
        dx_inputs = None
        if x_inputs.dim() == 2:
            flat = dr2zx.view(G * M, -1)
            dz_centres = torch.baddbmm((flat @ x_inputs).view(G, M, -1), dr2zz, z_inputs)
            if ctx.needs_input_grad[2]:
                dx_inputs = flat.T @ z_centres.reshape(G * M, -1)
        else:
            dz_centres = torch.baddbmm(torch.bmm(dr2zx, x_inputs), dr2zz, z_inputs)
            if ctx.needs_input_grad[2]:
                dx_inputs = torch.bmm(dr2zx.mT, z_centres)
        return dz_centres, dz_inputs, dx_inputs, dm, dC, None, None, None, None


def sparse_conditional(
    x: Tensor, Z: Tensor, w: Tensor, m: Tensor, C: Tensor, shape: Shape, jitter: float, name: str = "the layer"
) -> tuple[Tensor, Tensor, float]:
    """Mean and variance of q(f(x)), of unit prior variance, and the jitter that K_zz needed.

    x [N, D] (the same for every group) or [G, N, D], Z [G, M, D], w = 1/ℓ² [G, 1 or D], m [G, Q, M], C lower triangular
    [G, Q, M, M] -> mean and variance [G, Q, N].  Differentiable once in all of them.

    Raises:
        NumericalTrouble: K_zz has no Cholesky factor even with jitter · 10⁴.

    Source: Boustati (2021), eqs. (2.64), (2.65) and (3.5) to (3.9); Salimbeni and Deisenroth (2017), whitened.
    """
    isotropic = w.shape[-1] == 1
    z_inputs = lift_inputs(Z, isotropic)
    x_inputs = lift_inputs(x, isotropic)
    slopes = torch.is_grad_enabled()  # asked here: inside the function gradients are off
    return _SparseConditional.apply(lift_centres(Z, w), z_inputs, x_inputs, m, C, shape, jitter, name, slopes)
