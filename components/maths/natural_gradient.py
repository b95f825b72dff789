"""Natural gradient steps of Gaussian variational distributions held as a mean and a Cholesky
factor."""

from __future__ import annotations

import torch
from torch import Tensor

from components.maths.cholesky import triangular_inverse
from components.trouble import NumericalError

HALVINGS = 10  # the step is halved until the precision stays positive definite, γ/1024 at the least


def covariance_gradient(C: Tensor, dC: Tensor) -> Tensor:
    """∂f/∂S (symmetric) from ∂f/∂C (lower triangular), S = C Cᵀ: C⁻ᵀ sym(Φ(Cᵀ ∂f/∂C)) C⁻¹, [..., M,
    M]."""
    Cinv = triangular_inverse(C)
    phi = (C.mT @ dC).tril()
    phi.diagonal(dim1=-2, dim2=-1).mul_(0.5)
    return 0.5 * Cinv.mT @ (phi + phi.mT) @ Cinv


@torch.no_grad()
def natural_step(m: Tensor, C: Tensor, gamma: float) -> None:
    """One natural-gradient step up a bound, from the gradient of its negative.

    The *negative* of the bound has been differentiated into ``m.grad``, ``C.grad``.

        S⁻¹ ← S⁻¹ − 2 γ ∂ELBO/∂S,   S⁻¹ m ← S⁻¹ m + γ (∂ELBO/∂m − 2 ∂ELBO/∂S m)

    m [..., M] and C [..., M, M] are changed in place.  If the new precision is not positive
    definite, γ is halved.

    Raises:
        NumericalTrouble: no step down to γ/1024 leaves a positive definite precision.

    Source: Salimbeni, Eleftheriadis and Hensman (2018), eq. (10); Hensman et al. (2013),
    section 3.2.
    """
    assert m.grad is not None
    assert C.grad is not None
    dm = -m.grad
    dS = -covariance_gradient(C, C.grad)
    Cinv = triangular_inverse(C)
    precision = Cinv.mT @ Cinv
    linear = precision @ m.unsqueeze(-1)
    direction = dm.unsqueeze(-1) - 2 * dS @ m.unsqueeze(-1)
    for _ in range(HALVINGS + 1):
        P, info = torch.linalg.cholesky_ex(precision - 2 * gamma * dS)
        if not info.any():
            Pinv = triangular_inverse(P)
            S = Pinv.mT @ Pinv
            factor, info = torch.linalg.cholesky_ex(S)
            if not info.any():
                m.copy_((S @ (linear + gamma * direction)).squeeze(-1))
                C.copy_(factor)
                return
        gamma *= 0.5
    raise NumericalError(
        "the precision of q(u) after a natural gradient step", "lower inference.natural_gamma"
    )
