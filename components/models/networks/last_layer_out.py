"""Network with its last layer integrated out exactly: a log density over the parameters below that
layer and the noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities.densities import DataBatch
from components.contracts.problems import Batch
from components.maths.cholesky import LOG_2PI, half_log_det
from components.maths.exponential.standard_draws import standard_normal
from components.models.networks.flat_network import FlatNetwork


@dataclass(frozen=True)
class Regression:
    """The last layer's posterior at K particles; all float64."""

    features: Tensor  # Φ [K, N, m], with zero rows for missing labels
    variance: Tensor  # σ² [K]
    factor: Tensor  # L [K, m, m], LLᵀ = B
    mean: Tensor  # ŵ [K, m]
    residual: Tensor  # y − Φŵ [K, N]


class LastLayerMarginal:
    """log p(θ₋, y) = log ∫ p(θ, y) dw of one real-valued task.

    w [m] is the last layer, θ₋ [K, P − m] all other parameters. Let Φ = [h(x), 1] [N, m] be the
    outputs of the layers below and w ~ N(0, S), S diagonal:

        y | θ₋ ~ N(0, σ²I + ΦSΦᵀ),   w | θ₋, y ~ N(ŵ, σ²B⁻¹)
        log N = −½ [‖y − Φŵ‖²/σ² + ŵᵀS⁻¹ŵ + (N − m) log σ²
                    + log|B| + log|S| + N log 2π]
        B = ΦᵀΦ + σ²S⁻¹,  ŵ = B⁻¹Φᵀy
        ∂/∂Φ = (y − Φŵ) ŵᵀ/σ² − ΦB⁻¹
        ∂/∂ log σ² = ½ [‖y − Φŵ‖²/σ² − (N − m) − σ² tr(S⁻¹B⁻¹)]

    All three use one m × m Cholesky factor. Products of Φ are in float64, because float32 would
    lose σ²S⁻¹ next to ΦᵀΦ.

    Source: Rasmussen & Williams (2006), eqs. (2.8), (A.9), (A.10).
    """

    def __init__(self, network: FlatNetwork, m: int, features: Callable[[Tensor, Tensor], Tensor]):
        """Args: the network, the size of its last layer, and the outputs of the layers below.

        ``features`` maps weights [K, P − m] and x to [K, B, m − 1].
        """
        self.network = network
        self.features = features
        self.below = len(network.prior_std) - m  # number of weights below
        self.scale = network.prior_std[self.below :].double()  # √S [m]

    @property
    def dim(self) -> int:
        return self.network.dim - len(self.scale)

    @property
    def names(self) -> list[str]:
        return []

    def constrain(self, rest: Tensor) -> Tensor:
        return rest

    def rest(self, theta: Tensor) -> Tensor:
        """θ₋ from θ [K, P]."""
        return torch.cat([theta[:, : self.below], theta[:, self.below + len(self.scale) :]], 1)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return self.rest(self.network.sample_prior(n, generator))

    def log_prior(self, rest: Tensor) -> Tensor:
        """log p(θ₋), normalised: [K]."""
        s = self.network.prior_std[: self.below]
        z = rest[:, : self.below] / s
        weights = -0.5 * (z * z).sum(1) - s.log().sum() - 0.5 * self.below * LOG_2PI
        return weights + self.network.noise_log_prior(self._log_noise(rest))

    def log_likelihood(self, rest: Tensor, batch: DataBatch) -> Tensor:
        """log p(y | θ₋) of all rows jointly, which are dependent without w: [K, 1]."""
        assert isinstance(batch, Batch)
        features = self.features(rest[:, : self.below], batch.x)
        return self._evidence(self._regression(features, rest, batch), batch)[:, None].to(rest)

    def score(self, rest: Tensor, batch: Batch, value: bool) -> tuple[Tensor, Tensor]:
        """log p(θ₋, y) [K] and its gradient [K, P − m], from one backward pass through the layers
        below."""
        with torch.enable_grad():
            below = rest[:, : self.below].detach().requires_grad_()
            features = self.features(below, batch.x)  # [K, N, m − 1]
        fit = self._regression(features.detach(), rest, batch)
        inverse = torch.cholesky_inverse(fit.factor)  # B⁻¹ [K, m, m]
        left_factor = torch.cat(
            [(fit.residual / fit.variance[:, None])[..., None].to(rest), -fit.features.to(rest)], -1
        )
        right_factor = torch.cat([fit.mean[:, None], inverse], 1)[..., :-1].to(rest)
        # (y − Φŵ) ŵᵀ/σ² − ΦB⁻¹ in one product
        (slope,) = torch.autograd.grad(features, below, left_factor @ right_factor)
        parts = [slope - rest[:, : self.below] / self.network.prior_std[: self.below] ** 2]
        if self.network.learns_noise:
            parts.append(self._noise_slope(fit, inverse, rest, batch).to(rest))
        density = rest.new_empty(0)  # unused
        if value:
            density = (self.log_prior(rest) + self._evidence(fit, batch)).to(rest)
        return density, torch.cat(parts, 1)

    def complete(self, rest: Tensor, batch: DataBatch, generator: torch.Generator) -> Tensor:
        """θ [K, P] with w drawn from p(w | θ₋, y)."""
        assert isinstance(batch, Batch)
        with torch.no_grad():
            fit = self._regression(self.features(rest[:, : self.below], batch.x), rest, batch)
            z = standard_normal((*fit.mean.shape, 1), generator, fit.mean)
            z = torch.linalg.solve_triangular(fit.factor.mT, z, upper=True)[..., 0]
            w = fit.mean + fit.variance.sqrt()[:, None] * z  # L⁻ᵀz ~ N(0, B⁻¹)
        return torch.cat([rest[:, : self.below], w.to(rest), rest[:, self.below :]], 1)

    # Regression of y on Φ
    def _log_noise(self, rest: Tensor) -> Tensor:
        return (
            rest[:, self.below :]
            if self.network.learns_noise
            else self.network.log_noise.expand(len(rest), -1)
        )

    def _regression(self, features: Tensor, rest: Tensor, batch: Batch) -> Regression:
        """Regression of the labels on the features.

        If B cannot be factored in floating point, all results are NaN, so that samplers reject the
        state.
        """
        K, N, _ = features.shape
        phi = torch.cat([features, features.new_ones(K, N, 1)], -1).double()
        if not batch.mask.all():
            phi = phi * batch.mask
        y = torch.where(batch.mask, batch.y, 0.0).double()  # [N, 1]
        variance = self._log_noise(rest)[:, 0].double().exp()
        gram = phi.mT @ phi + torch.diag_embed(variance[:, None] / self.scale**2)  # B
        factor, failed = torch.linalg.cholesky_ex(gram)
        factor = torch.where(failed[:, None, None] > 0, torch.nan, factor)
        mean = torch.cholesky_solve(phi.mT @ y, factor)  # [K, m, 1]
        return Regression(phi, variance, factor, mean[..., 0], (y - phi @ mean)[..., 0])

    def _evidence(self, fit: Regression, batch: Batch) -> Tensor:
        """log N(y; 0, σ²I + ΦSΦᵀ) [K]."""
        n = batch.mask.sum().double()
        m = len(self.scale)
        square = fit.residual.square().sum(1) / fit.variance + (fit.mean / self.scale).square().sum(
            1
        )
        log_det = 2 * (half_log_det(fit.factor) + self.scale.log().sum())
        return -0.5 * (square + log_det + (n - m) * fit.variance.log() + n * LOG_2PI)

    def _noise_slope(self, fit: Regression, inverse: Tensor, rest: Tensor, batch: Batch) -> Tensor:
        """∂ log p(θ₋, y) / ∂ log σ², [K, 1]."""
        n = batch.mask.sum().double()
        m = len(self.scale)
        spread = fit.variance * (torch.linalg.diagonal(inverse) / self.scale**2).sum(1)
        slope = 0.5 * (fit.residual.square().sum(1) / fit.variance - (n - m) - spread)[:, None]
        return slope + self.network.noise_prior_gradient(self._log_noise(rest))
