"""Diffusion and curl of the recipe of Ma et al.: named choices, or matrices from the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.user_code import reraise_user_error
from components.errors import ConfigMismatchError

Matrices = Callable[[Tensor], tuple[Tensor, Tensor]]  # z [n] -> D(z), Q(z) [n, n]


@dataclass(frozen=True)
class RecipeTerms:
    """Drift of z [K, n], and the matrices of its noise.

    D and the columns M of D + Q that multiply ∇U: diagonals [K, P] of the rows from ``first`` on,
    or matrices [K, n, n] and [K, n, P].
    """

    drift: Tensor
    D: Tensor
    M: Tensor
    first: int = 0

    def noise(self, xi: Tensor, eps: float, V: Tensor) -> Tensor:
        """A draw of N(0, ε (2D − ε M V Mᵀ)) [K, n] from ξ ~ N(0, I); negative variances are set to
        0.

        V [K, P] are the variances of the gradient.
        """
        if self.D.ndim == 2:
            out = torch.zeros_like(self.drift)
            spread = (eps * (2 * self.D - eps * self.M.square() * V)).clamp_min(0).sqrt()
            out[:, self.first : self.first + xi.shape[1]] = spread * xi
            return out
        covariance = eps * (2 * self.D - eps * (self.M * V[:, None]) @ self.M.mT)
        values, axes = torch.linalg.eigh(covariance)
        scaled = values.clamp_min(0).sqrt()[..., None] * (axes.mT @ xi[..., None])
        return (axes @ scaled)[..., 0]


@dataclass(frozen=True)
class Metric:
    """G(θ) = g I and the diagonal of ∂G/∂θ, g [K, 1] and slope [K, P]."""

    g: Tensor
    slope: Tensor


def potential_metric(value: Tensor, gradient: Tensor, scale: float | None, offset: float) -> Metric:
    """G = s √|U(θ) + c| I for log joints −U [K] with gradients [K, P]; G = I without ``scale``."""
    if scale is None:
        return Metric(torch.ones_like(gradient[:, :1]), torch.zeros_like(gradient))
    U = (-value)[:, None].detach().requires_grad_()
    with torch.enable_grad():
        g = scale * (U + offset).abs().sqrt()
        (by_U,) = torch.autograd.grad(g.sum(), U)
    return Metric(g.detach(), -by_U * gradient)


def langevin(metric: Metric, gradient: Tensor) -> RecipeTerms:
    """z = θ: D = G, Q = 0."""
    G = metric.g.expand_as(gradient)
    return RecipeTerms(metric.g * gradient + metric.slope, G, G)


@dataclass(frozen=True)
class Kinetics:
    """K(r) = m c² Σ_j √(1 + r_j²/(m c)²): rᵀr/2m for c = ∞; velocities are at most c."""

    mass: float
    speed: float

    def velocity(self, r: Tensor) -> tuple[Tensor, Tensor]:
        """∇K and the diagonal of its Hessian at r, both in the shape of r."""
        inertia = self.mass * (1 + (r / (self.mass * self.speed)).square()).sqrt()
        return r / inertia, self.mass**2 / inertia**3


def hamiltonian(
    metric: Metric, gradient: Tensor, rest: Tensor, friction: float, kinetics: Kinetics
) -> RecipeTerms:
    """z = (θ, r), or (θ, r, ξ) if ``rest`` has one thermostat [K, P + 1] or one for each coordinate
    [K, 2P].

    D = [0 0; 0 A G], Q = [0 −√G; √G 0]; with v = ∇K(r) a thermostat adds Q_rξ = v/P,
    Q_ξr = −vᵀ/P and Γ_ξ = −tr ∇²K/P; P thermostats add Q_rξ = diag v, Γ_ξ = −diag ∇²K.
    """
    P = gradient.shape[1]
    v, curvature = kinetics.velocity(rest[:, :P])
    root = metric.g.sqrt()
    force = root * gradient + metric.slope / (2 * root) - friction * metric.g * v
    rows = [root * v, force]
    if rest.shape[1] > P:
        rows[1] = force - v * (rest[:, P:] - friction)
        heat = v.square()
        if rest.shape[1] == P + 1:
            heat = heat.mean(1, keepdim=True)
            curvature = curvature.mean(1, keepdim=True)
        rows.append(heat - curvature)
    return RecipeTerms(
        torch.cat(rows, 1),
        (friction * metric.g).expand_as(gradient),
        root.expand_as(gradient),
        first=P,
    )


def energy_gradient(gradient: Tensor, rest: Tensor, friction: float, kinetics: Kinetics) -> Tensor:
    """∇H of H = U + K(r) + (P/2n)|ξ − A|² of n thermostats [K, n], from the gradient −∇U [K, P]."""
    P = gradient.shape[1]
    xi = rest[:, P:]
    parts = [
        -gradient,
        kinetics.velocity(rest[:, :P])[0],
        P / max(xi.shape[1], 1) * (xi - friction),
    ]
    return torch.cat(parts, 1)


def any_matrices(
    matrices: Matrices, z: Tensor, gradient: Tensor, slope_of_H: Tensor, where: str
) -> RecipeTerms:
    """The user's D(z) and Q(z) at z [K, n]; Γ_i = Σ_j ∂(D + Q)_ij/∂z_j by automatic
    differentiation, n² numbers for each of n directions."""

    def total(one: Tensor) -> tuple[Tensor, Tensor]:
        D, Q = matrices(one)
        return D + Q, D

    with reraise_user_error(where, matrices):
        slopes = torch.func.vmap(torch.func.jacfwd(lambda one: total(one)[0]))(z)  # [K, n, n, n]
        M, D = torch.func.vmap(total)(z)
    gamma = torch.linalg.diagonal(slopes).sum(-1)
    drift = gamma - (M @ slope_of_H[..., None])[..., 0]
    return RecipeTerms(drift, D, M[:, :, : gradient.shape[1]])


def check_matrices(matrices: Matrices, z: Tensor, where: str) -> None:
    """Raise ConfigMismatchError unless D(z) is symmetric and positive semidefinite and Q(z)
    antisymmetric, both [n, n], at every row of z [K, n]."""
    n = z.shape[1]
    for point in z:
        with reraise_user_error(where, matrices):
            D, Q = matrices(point)
        shapes = [list(x.shape) if isinstance(x, Tensor) else [] for x in (D, Q)]
        if shapes != [[n, n], [n, n]]:
            raise ConfigMismatchError(
                f"{where}: D and Q are {shapes[0]} and {shapes[1]} for z [{n}]; return two [{n}, {n}] tensors"
            )
        size = 1e-6 * max(float(D.abs().max()), float(Q.abs().max()), 1e-6)
        if float((D - D.mT).abs().max()) > size or float(torch.linalg.eigvalsh(D)[0]) < -size:
            raise ConfigMismatchError(
                f"{where}: D(z) is not symmetric and positive semidefinite at z = {point.tolist()}; "
                f"fix the function"
            )
        if float((Q + Q.mT).abs().max()) > size:
            raise ConfigMismatchError(
                f"{where}: Q(z) is not antisymmetric at z = {point.tolist()}; Q must be −Qᵀ"
            )
