"""Families of q(θ) beyond a single Gaussian: mixtures of Gaussians, and flows."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn

from components.contracts.capabilities.densities import DataBatch
from components.contracts.problems import RowBatch
from components.gradients.by_parameter import Called
from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.inference.variational.global_gaussian import bound_in_chunks
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal, standard_uniform


class FlexibleGuide(nn.Module):
    """q(θ) for one θ shared by all rows, which use the same S draws: interface for gradients.

    A row's share of the bound is log p(y_b | θ) + (log p(θ) − log q(θ))/N, as for a Gaussian."""

    def __init__(self, target: RowwiseLogJoint, dim: int):
        super().__init__()
        self.target = target
        self.dim = dim

    @abstractmethod
    def places(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """θ from noise ε ~ N(0, I) [S, P], J values for each: [S, J, P], and weights [J] that sum
        to 1, with E_q f = E_ε Σ_j w_j f(θ_j)."""

    @abstractmethod
    def log_density(self, theta: Tensor) -> Tensor:
        """log q(θ), [n, P] -> [n]."""

    @abstractmethod
    def draw(self, noise: Tensor, uniform: Tensor) -> Tensor:
        """θ ~ q [n, P] from ε ~ N(0, I) [n, P] and u ~ U(0, 1) [n]."""

    def _like(self) -> Tensor:
        return next(iter(self.parameters()))

    def _shares(self, batch: RowBatch, theta: Tensor, log_q: Tensor) -> Tensor:
        """log p(y_b | θ_s) + (log p(θ_s) − log q(θ_s))/N [S, B] at θ [S, P]."""
        share = (self.target.log_prior(theta[:, None])[:, 0] - log_q) / (batch.scale * batch.n_rows)
        return self.target.log_likelihood(theta[:, None], batch) + share[:, None]

    # Pathwise
    @property
    def noise_dim(self) -> int:
        return self.dim

    def draw_noise(self, batch: RowBatch, n_samples: int, generator: torch.Generator) -> Tensor:
        """ε ~ N(0, I), one draw per sample, expanded over the rows [S, B, P]."""
        noise = standard_normal((n_samples, 1, self.dim), generator, self._like())
        return noise.expand(-1, batch.n_rows, -1)

    def elbo_rows(self, batch: RowBatch, noise: Tensor) -> Tensor:
        return self._rows(batch, noise, held=False)

    def path_rows(self, batch: RowBatch, noise: Tensor) -> Tensor:
        """Rows of the bound with gradients through the draws and their weights only."""
        return self._rows(batch, noise, held=True)

    def _rows(self, batch: RowBatch, noise: Tensor, held: bool) -> Tensor:
        theta, weights = self.places(noise[:, 0])  # [S, J, P], [J]
        flat = theta.flatten(0, 1)
        if held:
            density = Called(self, self.log_density)
            still = {name: p.detach() for name, p in density.named_parameters()}
            log_q = torch.func.functional_call(density, still, (flat,))
        else:
            log_q = self.log_density(flat)
        value = self._shares(batch, flat, log_q).unflatten(0, theta.shape[:2])  # [S, J, B]
        return torch.einsum("sjb,j->sb", value, weights)

    def kl(self) -> Tensor:
        """0, because the rows include it."""
        return self._like().new_zeros(())

    @torch.no_grad()
    def elbo(self, data: DataBatch, noise: Tensor) -> Tensor:
        """The bound for all N rows [] from K draws, ε [K, P]."""
        return bound_in_chunks(self._like().new_zeros(()), self.elbo_rows, data, noise)

    # LogRatio
    @torch.no_grad()
    def sample(self, batch: RowBatch, n_samples: int, generator: torch.Generator) -> Tensor:
        """θ ~ q, shared by the rows [S, B, P]."""
        noise = self.draw_noise(batch, n_samples, generator)[:, 0]
        uniform = standard_uniform((n_samples,), generator, noise)
        return self.draw(noise, uniform)[:, None].expand(-1, batch.n_rows, -1)

    def log_q(self, batch: RowBatch, z: Tensor) -> Tensor:
        """Row shares log q(θ_s)/N [S, B], each with the whole gradient of log q(θ_s)."""
        value = self.log_density(z[:, 0])[:, None].expand(-1, batch.n_rows)
        return value.detach() / (batch.scale * batch.n_rows) + (value - value.detach())

    def log_joint(self, batch: RowBatch, z: Tensor) -> Tensor:
        theta = z[:, 0]
        return self._shares(batch, theta, theta.new_zeros(len(theta)))


class MixtureGuide(FlexibleGuide):
    """q(θ) = Σ_j w_j N(θ | m_j, diag s_j²); each noise draw gives one θ for every part, so that
    parts are not drawn at random."""

    def __init__(self, target: RowwiseLogJoint, centres: Tensor, std: float):
        super().__init__(target, centres.shape[1])
        self.means = nn.Parameter(centres.clone())  # [J, P]
        self.log_stds = nn.Parameter(torch.full_like(centres, math.log(std)))
        self.logits = nn.Parameter(centres.new_zeros(len(centres)))

    def places(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        return self.means + self.log_stds.exp() * noise[:, None], self.logits.softmax(0)

    def log_density(self, theta: Tensor) -> Tensor:
        z = (theta[:, None] - self.means) / self.log_stds.exp()  # [n, J, P]
        each = -0.5 * (z.square() + LOG_2PI).sum(2) - self.log_stds.sum(1)
        return (each + self.logits.log_softmax(0)).logsumexp(1)

    def draw(self, noise: Tensor, uniform: Tensor) -> Tensor:
        ends = self.logits.softmax(0).cumsum(0)
        part = torch.searchsorted(ends, uniform).clamp_max(len(ends) - 1)
        return self.means[part] + self.log_stds.exp()[part] * noise


class FlowGuide(FlexibleGuide):
    """θ = m + s ∘ T(ε), T a chain of affine couplings: half of the coordinates are shifted and
    scaled by a network of the others.

        u_b ← u_b exp(tanh α(u_a)) + β(u_a),  u_a unchanged, halves alternate

    Initially T is the identity.  Source: Dinh, Sohl-Dickstein and Bengio (2017), eqs. (4) to
    (8)."""

    def __init__(
        self,
        target: RowwiseLogJoint,
        mean: Tensor,
        std: float,
        layers: int,
        width: int,
        generator: torch.Generator,
    ):
        P = len(mean)
        super().__init__(target, P)
        self.mean = nn.Parameter(mean.clone())
        self.log_std = nn.Parameter(torch.full_like(mean, math.log(std)))

        def weights(rows: int, columns: int) -> nn.Parameter:
            normals = standard_normal((layers, rows, columns), generator, mean)
            return nn.Parameter(normals / columns**0.5)

        self.first = weights(width, P)
        self.bias = nn.Parameter(mean.new_zeros(layers, width))
        self.second = nn.Parameter(mean.new_zeros(layers, 2 * P, width))
        mask = (
            torch.arange(P, device=mean.device) % 2
            == torch.arange(layers, device=mean.device)[:, None] % 2
        )
        self.register_buffer("kept", mask.to(mean.dtype))  # [layers, P]

    def _log_scale_and_shift(self, layer: int, u: Tensor) -> tuple[Tensor, Tensor]:
        """Log scale and shift of the transformed coordinates, from the unchanged ones."""
        mask: Tensor = self.get_buffer("kept")[layer]
        hidden = ((u * mask) @ self.first[layer].T + self.bias[layer]).tanh()
        stretch, shift = (hidden @ self.second[layer].T).chunk(2, -1)
        return stretch.tanh() * (1 - mask), shift * (1 - mask)

    def _forward(self, noise: Tensor) -> Tensor:
        u = noise
        for layer in range(len(self.first)):
            stretch, shift = self._log_scale_and_shift(layer, u)
            u = u * stretch.exp() + shift
        return self.mean + self.log_std.exp() * u

    def places(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        return self._forward(noise)[:, None], noise.new_ones(1)

    def log_density(self, theta: Tensor) -> Tensor:
        u = (theta - self.mean) / self.log_std.exp()
        log_det = self.log_std.sum()
        for layer in reversed(range(len(self.first))):
            stretch, shift = self._log_scale_and_shift(layer, u)
            u = (u - shift) * (-stretch).exp()
            log_det = log_det + stretch.sum(-1)
        return -0.5 * (u.square() + LOG_2PI).sum(-1) - log_det

    def draw(self, noise: Tensor, uniform: Tensor) -> Tensor:
        return self._forward(noise)
