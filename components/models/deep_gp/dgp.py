"""Single-task deep Gaussian process with a learned variational posterior and fixed
hyperparameters."""

from __future__ import annotations

import math
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.contracts.predictive import GaussianMixture
from components.contracts.problems import Batch
from components.contracts.requirements import ONE_REAL_LABEL
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.maths.exponential.standard_draws import standard_normal
from components.models.deep_gp.build import choose_inputs, make_linear_map
from components.models.deep_gp.fixed_layer import FixedLayer
from components.models.linear.design import check_one_task
from components.problems.supervised import Supervised
from components.registry import register


class TwoLayers(nn.Module):
    """q(f_1) and q(f_2) of y = f_2(f_1(x)) + N(0, σ²), and a row-wise bound given the noise.

    The noise of a row [E or E + 1] is the noise of f_1(x_b) [E] followed, if the top layer
    is sampled, by the noise of f_2.
    """

    def __init__(
        self, inner: FixedLayer, top: FixedLayer, noise_variance: float, samples_top: bool
    ):
        super().__init__()
        self.inner = inner
        self.top = top
        self.noise_variance = noise_variance
        self.samples_top = samples_top

    @property
    def inner_dim(self) -> int:
        return len(self.inner.q_mean)

    @property
    def noise_dim(self) -> int:
        return self.inner_dim + self.samples_top

    @property
    def context_dim(self) -> int:
        return self.inner.inducing.shape[1] + 1

    def context(self, batch: Batch) -> Tensor:
        return batch.side_by_side()  # [B, C]

    # The bound
    def draw_noise(self, batch: Batch, n_samples: int, generator: torch.Generator) -> Tensor:
        shape = (n_samples, batch.n_rows, self.noise_dim)
        return standard_normal(shape, generator, batch.x)

    def top_moments(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance of f_2 at samples of f_1, [S, B] each: x [B, D], noise [S, B, E or
        more]."""
        mean, variance = self.inner(x)
        features = mean + variance.sqrt() * noise[..., : self.inner_dim]  # [S, B, E]
        mean, variance = self.top(features)
        return mean.squeeze(-1), variance.squeeze(-1)

    def elbo_rows(self, batch: Batch, noise: Tensor) -> Tensor:
        """log p(y_b | f_2(f_1(x_b))) [S, B] at a sample of f_2, or its mean over q(f_2); 0 for a
        missing label."""
        mean, variance = self.top_moments(batch.x, noise)
        is_observed = batch.mask[:, 0]
        y = torch.where(is_observed, batch.y[:, 0], 0.0)
        spread = variance  # for the closed form: E (y − f)² = (y − μ)² + v
        if self.samples_top:
            mean = mean + variance.sqrt() * noise[..., -1]
            spread = torch.zeros_like(variance)
        square = (y - mean).square() + spread
        value = -0.5 * (math.log(2 * math.pi * self.noise_variance) + square / self.noise_variance)
        return torch.where(is_observed, value, 0.0)

    def kl(self) -> Tensor:
        return self.inner.kl() + self.top.kl()

    def elbo(self, batch: Batch, noise: Tensor) -> dict[str, Tensor]:
        log_likelihood = batch.scale * self.elbo_rows(batch, noise).mean(0).sum()
        kl = self.kl()
        return {"elbo": log_likelihood - kl, "log_likelihood": log_likelihood, "kl": kl}

    # Predictions
    def sample_predictive(self, x: Tensor, n: int, generator: torch.Generator) -> GaussianMixture:
        """p(y*|x*) as a mixture over n samples of f_1, with f_2 integrated out; x [B, D]."""
        noise = standard_normal((n, len(x), self.inner_dim), generator, x)
        mean, variance = self.top_moments(x, noise)
        return GaussianMixture(mean.unsqueeze(-1), (variance + self.noise_variance).unsqueeze(-1))

    def predict_f(self, x: Tensor, n: int, generator: torch.Generator) -> GaussianMixture:
        """p(y | f_2) at n draws of f_1 and f_2, separately at every row of x [B, D]."""
        predictive = self.sample_predictive(x, n, generator)
        eps = standard_normal(predictive.mu.shape, generator, x)
        noise = torch.full_like(predictive.v, self.noise_variance)
        return GaussianMixture(
            predictive.mu + (predictive.v - noise).clamp_min(0).sqrt() * eps, noise
        )

    def sample_prior_f(self, x: Tensor, generator: torch.Generator) -> GaussianMixture:
        """p(y | f_2) at one draw of both layers from their priors, jointly at x [B, D]: S = 1."""
        f = self.top.sample_prior(self.inner.sample_prior(x, generator), generator)[None]
        return GaussianMixture(f, torch.full_like(f, self.noise_variance))


@register("model", "dgp")
class DGP(Model[Supervised, TwoLayers]):
    """Deep Gaussian process of two layers with fixed hyperparameters and inducing inputs.

    Only q(u_1) and q(u_2) are learned.

        y = f_2(f_1(x)) + η,   f_1 ~ GP(id(x), k) [E],   f_2 ~ GP(0, k),
        k(x, x') = s² exp(−|x − x'|²/2ℓ²),   η ~ N(0, σ²)
        ELBO = Σ_b E[log p(y_b | f_2(f_1(x_b)))]
               − KL[q(u_1) ‖ p(u_1)] − KL[q(u_2) ‖ p(u_2)],
        q(u_l) = N(m_l, L_l L_lᵀ)

    m_l and L_l refer to whitened values. The noise of a row is the noise of f_1 [E] and, with
    ``top: sampled`` as in (B.7), the noise of f_2; ``integrated`` computes the mean over f_2 given
    f_1 in closed form. Inducing inputs of both layers are the k-means centroids of the training
    inputs (mapped through the mean function for the upper layer).

    Raises ConfigMismatchError for a dataset of several tasks.

    Source: Boustati (2021), eq. (B.7) and appendix B.2.2; Salimbeni and Deisenroth (2017).
    """

    requires = ONE_REAL_LABEL

    inner_dim: PositiveInt
    n_inducing: PositiveInt
    lengthscale: PositiveFloat
    variance: PositiveFloat
    noise_variance: PositiveFloat
    top: Literal["sampled", "integrated"]
    inner_q_scale: PositiveFloat
    top_q_scale: PositiveFloat
    jitter: PositiveFloat

    def build(self, problem: Supervised, rng: Rng) -> TwoLayers:
        check_one_task(problem, self.name)
        x = problem.train.x
        Z = choose_inputs(x, self.n_inducing, "kmeans", rng.init)
        weight = make_linear_map(x, self.inner_dim)

        def layer(
            name: str, inducing: Tensor, outputs: int, q_scale: float, mean: Tensor | None
        ) -> FixedLayer:
            return FixedLayer(
                name,
                inducing,
                outputs,
                lengthscale=self.lengthscale,
                variance=self.variance,
                q_scale=q_scale,
                mean_weight=mean,
                jitter=self.jitter,
            )

        inner = layer("inner", Z, self.inner_dim, self.inner_q_scale, weight)
        top = layer("top", Z @ weight, 1, self.top_q_scale, None)
        return TwoLayers(inner, top, self.noise_variance, self.top == "sampled")
