"""The scale of a generalised posterior, from the information in the data.

With J = E ∇²ℓ and V = E ∇ℓ ∇ℓᵀ at the minimiser θ̂ of N rows, θ̂ has the covariance J⁻¹ V J⁻¹/N,
and a posterior exp(−w Σ ℓ) the covariance J⁻¹/(w N).  For the true negative log-likelihood J = V,
and both agree at w = 1."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from components.errors import ConfigMismatchError

Rows = Callable[[Tensor], Tensor]  # θ [P] -> loss of each row [N]
MOST_PARAMETERS = 500  # J and V have the square of this number of entries
ITERATIONS = 500


def minimise(loss: Callable[[Tensor], Tensor], theta: Tensor) -> Tensor:
    """A local minimum θ̂ [P] of a function θ [P] -> [], by L-BFGS from ``theta``."""
    theta = theta.detach().clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [theta], max_iter=ITERATIONS, tolerance_grad=1e-9, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(theta)
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(closure)
    return theta.detach()


def information(loss: Rows, theta: Tensor) -> tuple[Tensor, Tensor]:
    """J and V [P, P] at θ [P]: means over rows of ∇²ℓ_n and ∇ℓ_n ∇ℓ_nᵀ.

    Raises:
        ConfigMismatchError: θ is too long, or J or V is not positive definite.
    """
    if len(theta) > MOST_PARAMETERS:
        raise ConfigMismatchError(
            f"model.rate: calibration supports at most {MOST_PARAMETERS} parameters, not "
            f"{len(theta)}; set model.rate to a number"
        )
    with torch.enable_grad():
        G = torch.autograd.functional.jacobian(loss, theta)  # [N, P]
        J = torch.autograd.functional.hessian(lambda t: loss(t).mean(), theta)
    V = G.mT @ G / len(G)
    for matrix in (J, V):
        if bool(torch.linalg.cholesky_ex(matrix)[1]):
            raise ConfigMismatchError(
                "model.rate: the rows do not identify all parameters; set model.rate to a number, "
                "or use fewer parameters or more rows"
            )
    return J, V


def spread(loss: Rows, theta: Tensor) -> Tensor:
    """A root S [P, P] of (Σ ∇ℓ_n ∇ℓ_nᵀ + I)⁻¹ = S Sᵀ, the covariance of θ̂ for J = V."""
    with torch.enable_grad():
        G = torch.autograd.functional.jacobian(loss, theta)  # [N, P]
    L = torch.linalg.cholesky(G.mT @ G + torch.eye(len(theta), dtype=G.dtype, device=G.device))
    return torch.linalg.inv(L).mT


def information_rate(J: Tensor, V: Tensor) -> float:
    """w = tr(J V⁻¹ J) / tr J: N w J, the precision of the posterior, has the trace of N J V⁻¹ J.

    Source: Lyddon, Holmes and Walker (2019), section 3.2."""
    return float((J @ torch.linalg.solve(V, J)).trace() / J.trace())


def magnitude_rate(J: Tensor, V: Tensor) -> float:
    """w = P / tr(J⁻¹ V): the quadratic form w N (θ − θ̂)ᵀ J (θ − θ̂) has mean P, as under the
    posterior.

    Source: Ribatet, Cooley and Davison (2012), section 2.2."""
    return len(J) / float(torch.linalg.solve(J, V).trace())


def curvature_adjustment(J: Tensor, V: Tensor) -> Tensor:
    """C [P, P] with Cᵀ J C = J V⁻¹ J: exp(−Σ ℓ(θ̂ + C(θ − θ̂))) has the covariance of θ̂.

    Source: Ribatet, Cooley and Davison (2012), section 2.2."""
    upper = torch.linalg.cholesky(J).mT
    adjusted = torch.linalg.cholesky(J @ torch.linalg.solve(V, J)).mT
    return torch.linalg.solve_triangular(upper, adjusted, upper=True)
