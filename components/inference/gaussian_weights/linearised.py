"""A network linearised at its weights θ̂: the Jacobian, the curvature of the log-likelihood, and
predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.contracts.capabilities import WeightSpace
from components.contracts.checks import NamedScores
from components.contracts.costs.counts import count
from components.contracts.posteriors import Analyses, Predicts
from components.contracts.predictive import Categorical, GaussianMixture, Predictive
from components.contracts.problems import Batch
from components.maths.exponential.standard_draws import standard_normal
from components.posteriors.redraws import hold

NUMBERS = 2**23  # maximum number of Jacobian entries in memory


def jacobian(network: WeightSpace, x: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """f [B, T, C] at x [B, D], and its derivatives with respect to the last m weights of θ̂ [B, T,
    C, m]; differentiable in x.

    Every row gets its own copy of the weights, so that one backward pass for each of the T C
    outputs serves all rows."""
    copies = network.theta.detach().repeat(len(x), 1).requires_grad_()
    following = torch.is_grad_enabled() and x.requires_grad
    with torch.enable_grad():
        f = network.outputs(copies, x.unsqueeze(1))[:, 0]  # [B, T, C]
        rows = [
            torch.autograd.grad(value, copies, retain_graph=True, create_graph=following)[0][:, -m:]
            for value in f.flatten(1).sum(0)
        ]
    count(gradients=len(rows))
    derivatives = torch.stack(rows, 1).unflatten(1, f.shape[1:])
    return (f, derivatives) if following else (f.detach(), derivatives)


def chunks(network: WeightSpace, all_rows: Batch, m: int) -> list[Batch]:
    """All rows, in batches small enough for their Jacobians to fit in memory."""
    outputs = network.outputs(network.theta.detach()[None], all_rows.x[:1]).numel()
    size = max(1, NUMBERS // (outputs * max(m, len(network.theta))))
    return [
        all_rows.part(slice(start, start + size), 1.0) for start in range(0, all_rows.n_rows, size)
    ]


def gauss_newton(network: WeightSpace, all_rows: Batch, m: int, diagonal: bool) -> Tensor:
    """G = Σ_n J_nᵀ Λ_n J_n of all rows [m, m], or its diagonal [m]: the Hessian of −log p(y|x, θ)
    of the linearised network.

    Λ is I/σ² for real labels and diag(p) − p pᵀ for classes; missing labels count zero.

    Source: Martens (2020), section 8; Immer, Korzepa and Bauer (2021), eq. (3)."""
    total = torch.zeros((m,) if diagonal else (m, m), dtype=torch.float64, device=all_rows.x.device)
    for batch in chunks(network, all_rows, m):
        f, derivatives = jacobian(network, batch.x, m)  # [B, T, C], [B, T, C, m]
        with torch.no_grad():
            predictive = network.output_predictive(f.unsqueeze(0))
            if isinstance(predictive, GaussianMixture):
                rooted = derivatives / predictive.v[0, ..., None, None].sqrt()
            else:  # (I − u uᵀ) diag(u), u = √p, is a root of Λ, because I − u uᵀ is a projection
                assert isinstance(predictive, Categorical)
                u = predictive.probs.sqrt().unsqueeze(-1)  # [B, T, C, 1]
                scaled = u * derivatives
                rooted = scaled - u * (u * scaled).sum(2, keepdim=True)
            rooted = (rooted * batch.mask[..., None, None]).flatten(0, 2).double()  # [B T C, m]
            total += rooted.square().sum(0) if diagonal else rooted.T @ rooted
    return total


@dataclass(frozen=True)
class LinearisedPosterior(Analyses):
    """q(θ) = N(θ̂, H⁻¹) with f(x) + J(x) (θ − θ̂) of a network: real labels are predicted in closed
    form, classes by draws."""

    network: WeightSpace  # at θ̂
    root: Tensor  # R [m, m] lower triangular, H = R Rᵀ; the square root [m] of a diagonal H
    noise_factor: float  # κ, factor of the noise variances
    log_evidence: float  # nats
    n_predict: int
    drawn: bool = False  # True to predict real labels by draws, too

    def spread(self, derivatives: Tensor) -> Tensor:
        """J R⁻ᵀ; its product with its transpose is the covariance of f: [..., m] -> [..., m]."""
        root = self.root.to(derivatives)
        if root.ndim == 1:
            return derivatives / root
        flat = derivatives.flatten(0, -2)
        return torch.linalg.solve_triangular(root, flat.T, upper=False).T.reshape(derivatives.shape)

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """N(f, J H⁻¹ Jᵀ + σ²) at x [B, D], or the mixture over S linearised networks;
        differentiable in x."""
        f, derivatives = jacobian(self.network, x, len(self.root))
        spread = self.spread(derivatives)  # [B, T, C, m]
        plain = self.network.output_predictive(f.unsqueeze(0))
        if isinstance(plain, GaussianMixture):
            noise = self.noise_factor * plain.v  # [1, B, T]
            if not self.drawn:
                return GaussianMixture(plain.mu, noise + spread.square().sum(-1)[..., 0])
        z = standard_normal((self.n_predict, len(self.root)), generator, f)
        functions = f + torch.einsum("btcm,sm->sbtc", spread, z)  # [S, B, T, C]
        if isinstance(plain, GaussianMixture):
            mu = functions[..., 0]
            return GaussianMixture(mu, noise.expand_as(mu))
        return self.network.output_predictive(functions)

    def some(self, n: int, generator: torch.Generator | None) -> Predicts:
        """n linearised networks for each prediction: new draws, or without a generator always the
        same."""
        return hold(replace(self, n_predict=n, drawn=True), generator)

    def scores(self) -> NamedScores:
        """Laplace approximation of the evidence of the training rows."""
        return {"log_evidence": self.log_evidence}


@dataclass(frozen=True)
class Evidence:
    """Laplace approximation of log p(D) as a function of c and κ.

    c multiplies all prior variances, and κ the variances of the noise.

        log p(D) ≈ log p(D|θ̂) + log p(θ̂) + m/2 log 2π − ½ log|H|
                 = log p(D|θ̂, κ) − ½ Q/c − ½ Σ_i log(1 + c λ_i/κ)
        λ_i of S^½ G S^½,  Q = Σ_p θ̂_p²/s_p²

    Source: MacKay (1992), eq. (6); Immer, Bauer, Fortuin, Rätsch and Khan (2021), eq. (3).
    """

    log_likelihood: float  # at κ = 1
    labels: int  # number of real labels; 0 for classes, with κ = 1
    residual: float  # Σ (y − f)²/σ² of real labels
    square: float  # Q
    curvatures: Tensor  # λ [m]

    def value(self, c: float, kappa: float) -> float:
        """log p(D) in nats."""
        fit = (
            self.log_likelihood
            - 0.5 * self.labels * math.log(kappa)
            - 0.5 * self.residual * (1 / kappa - 1)
        )
        return (
            fit - 0.5 * self.square / c - 0.5 * float((self.curvatures * (c / kappa)).log1p().sum())
        )

    def maximum(self, rounds: int = 200) -> tuple[float, float]:
        """c and κ at a stationary point: c = Q/γ, κ = R/(labels − γ), γ = Σ_i c λ_i/(κ + c λ_i) the
        parameters determined.

        Source: MacKay (1992), eq. (17), (18)."""
        c = kappa = 1.0
        for _ in range(rounds):
            scaled = self.curvatures * (c / kappa)
            determined = float((scaled / (1 + scaled)).sum())
            c_next = self.square / max(determined, 1e-8)
            kappa_next = self.residual / max(self.labels - determined, 1e-8) if self.labels else 1.0
            has_converged = abs(math.log(c_next / c)) + abs(math.log(kappa_next / kappa)) < 1e-8
            c = c_next
            kappa = kappa_next
            if has_converged:
                break
        return c, kappa
