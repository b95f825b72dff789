"""The recipe of Ma et al. (2015) written out, slowly, in float64: what SG-MCMC methods are compared
with.

dz = [−(D + Q) ∇H + Γ] dt + N(0, 2D dt),  Γ_i = Σ_j ∂(D + Q)_ij/∂z_j,  leaves exp(−H) invariant; z [n] is one chain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from support.runs.configured import F64
from support.targets.known_targets import PriorAlone
from torch import Tensor
from torch.autograd.functional import jacobian

from components import registry

Energy = Callable[[Tensor], Tensor]  # z [n] -> []
Matrix = Callable[[Tensor], Tensor]  # z [n] -> [n, n]


class PriorOfTwo(PriorAlone):
    """Potential of two parameters: U(θ) = −log p(θ)."""

    spread = 0.5

    def log_prior(self, theta: Tensor) -> Tensor:
        raise NotImplementedError

    def U(self, theta: Tensor) -> Tensor:
        return -self.log_prior(theta.unsqueeze(0))[0]


def gradient(H: Energy, z: Tensor) -> Tensor:
    z = z.detach().requires_grad_()
    return torch.autograd.grad(H(z), z)[0]


def correction(z: Tensor, D: Matrix, Q: Matrix) -> Tensor:
    """Γ, entry by entry."""
    slopes = jacobian(lambda z: D(z) + Q(z), z)  # ∂(D + Q)_ij/∂z_k at [i, j, k]
    gamma = torch.zeros_like(z)
    for i in range(len(z)):
        for j in range(len(z)):
            gamma[i] += slopes[i, j, j]
    return gamma


def drift(z: Tensor, H: Energy, D: Matrix, Q: Matrix) -> Tensor:
    return -(D(z) + Q(z)) @ gradient(H, z) + correction(z, D, Q)


def euler(z: Tensor, H: Energy, D: Matrix, Q: Matrix, eps: float, xi: Tensor) -> Tensor:
    """One Euler step with noise √(2 ε D) ξ, D diagonal."""
    return z + eps * drift(z, H, D, Q) + (2 * eps * D(z).diagonal()).sqrt() * xi


def split_step(
    z: Tensor, H: Energy, D: Matrix, Q: Matrix, eps: float, xi: Tensor, first: slice, last: slice
) -> Tensor:
    """The rows ``first`` of an Euler step, then the rows ``last`` of an Euler step from there."""
    for rows in (first, last):
        after = z.clone()
        after[rows] = euler(z, H, D, Q, eps, xi)[rows]
        z = after
    return z


def curl(P: int) -> Tensor:
    """Q = [0 −I; I 0]."""
    zero = torch.zeros(P, P, dtype=F64)
    unit = torch.eye(P, dtype=F64)
    return torch.cat([torch.cat([zero, -unit], 1), torch.cat([unit, zero], 1)])


def zero(n: int) -> Matrix:
    """A matrix of zeros at every z."""
    return lambda z: torch.zeros(n, n, dtype=F64)


def with_momentum(U: Energy, P: int, mass: Tensor | float = 1.0) -> Energy:
    """H(θ, r) = U(θ) + ½ Σ_j r_j²/m_j."""
    return lambda z: U(z[:P]) + 0.5 * (z[P:].square() / mass).sum()


def flow(z: Tensor, H: Energy, eps: float) -> Tensor:
    """An Euler step of Hamilton's equations."""
    n = len(z)
    return euler(z, H, zero(n), lambda z: curl(n // 2), eps, torch.zeros(n))


def fokker_planck(z: Tensor, H: Energy, D: Matrix, mu: Callable[[Tensor], Tensor]) -> float:
    """∂_t π / π = [−Σ_i ∂_i (μ_i π) + Σ_ij ∂_i ∂_j (D_ij π)]/π at z, for π = exp(−H): zero if π is
    invariant."""

    def current(z: Tensor) -> Tensor:  # −J_i
        spread = torch.func.jacrev(lambda z: D(z) * torch.exp(-H(z)))(z)  # [i, j, k]
        return spread.diagonal(dim1=1, dim2=2).sum(1) - mu(z) * torch.exp(-H(z))

    return float(torch.func.jacrev(current)(z).diagonal().sum() / torch.exp(-H(z)))


def stationary(
    step: Callable[[Tensor, Tensor], Tensor], n: int, n_noise: int | None = None
) -> Tensor:
    """Covariance Σ = A Σ Aᵀ + B Bᵀ of a linear chain z ← step(z, ξ) = A z + B ξ + c, [n, n]."""
    zero = torch.zeros(n, dtype=F64)
    xi = torch.zeros(n_noise or n, dtype=F64)
    A, B = (
        torch.stack([step(*point) for point in points], 1) - step(zero, xi).unsqueeze(1)
        for points in _units(n, len(xi))
    )
    return fixed_point(lambda S: A @ S @ A.T + B @ B.T, n)


def _units(n: int, m: int) -> tuple[list[tuple[Tensor, Tensor]], list[tuple[Tensor, Tensor]]]:
    zero = torch.zeros(n, dtype=F64)
    xi = torch.zeros(m, dtype=F64)
    states = [(e, xi) for e in torch.eye(n, dtype=F64)]
    return states, [(zero, e) for e in torch.eye(m, dtype=F64)]


def fixed_point(f: Callable[[Tensor], Tensor], n: int) -> Tensor:
    """The S [n, n] with S = f(S) for an affine f."""
    zero = torch.zeros(n, n, dtype=F64)
    constant = f(zero)
    basis = torch.eye(n * n, dtype=F64).unflatten(1, (n, n))
    linear = torch.stack([(f(e) - constant).flatten() for e in basis], 1)
    return torch.linalg.solve(torch.eye(n * n, dtype=F64) - linear, constant.flatten()).unflatten(
        0, (n, n)
    )


def covariance_z(samples: Tensor, covariance: Tensor) -> float:
    """Largest |z| of the entries of the sample covariance of Gaussian samples [C, P]."""
    C = len(samples)
    v = covariance.diagonal()
    # for independent Gaussians
    error = ((covariance.square() + v * v.unsqueeze(1)) / (C - 1)).sqrt()
    return float(((samples.T.cov() - covariance) / error).abs().max())


def mutate_component(module: ModuleType, right: str, wrong: str) -> type:
    """Component of a module with ``right`` replaced by ``wrong`` in its source; the registry keeps
    the original."""
    (role, name), sound = next(
        (key, cls) for key, cls in registry._registered.items() if cls.__module__ == module.__name__
    )
    try:
        mutated_names(module, right, wrong)
        return registry.get(role, name)
    finally:
        registry._registered[role, name] = sound


def mutated_names(module: ModuleType, right: str, wrong: str) -> dict[str, Any]:
    """Names of a module with ``right`` replaced by ``wrong`` in its source."""
    source = Path(str(module.__file__)).read_text()
    assert source.count(right) == 1, f"{module.__name__} does not contain {right!r} exactly once"
    names = dict(module.__dict__)
    exec(compile(source.replace(right, wrong), str(module.__file__), "exec"), names)
    return names


def twisted_diffusion(z: Tensor) -> tuple[Tensor, Tensor]:
    """A diffusion matrix with its own directions and a curl, both functions of z [2]."""
    u = torch.stack([torch.sin(z[1]), torch.cos(z[0])])
    D = 0.3 * torch.eye(2, dtype=z.dtype) + torch.outer(u, u)
    return D, (1 + 0.5 * torch.tanh(z[0] * z[1])) * curl(1)
