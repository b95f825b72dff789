"""The built multi-task deep GP: its bound as a function of explicit noise, and its predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from components.contracts.predictive import Predictive, join
from components.maths.exponential.standard_draws import standard_normal
from components.maths.sparse_gp import LayerTerms
from components.models.deep_gp.layer import GPLayer
from components.models.deep_gp.layout import Layout
from components.models.deep_gp.levels import Features, Level, join_features
from components.models.deep_gp.likelihoods import Likelihood, predictive_at_draws
from components.models.deep_gp.tops import Top

if TYPE_CHECKING:
    from components.contracts.problems import Batch

# size of the largest tensor in a prediction (128 MB in float64); samples are processed in chunks
PREDICTION_ELEMENTS = 2**24


@dataclass(frozen=True)
class DGPNoise:
    """Standard normals for one evaluation of the bound, and the layout of their batch."""

    layout: Layout
    levels: list[list[Tensor | None]]  # shared [S, B, P] and specific [S, T, n, J] of each level
    likelihood: Tensor | None  # [S, T, n, C], likelihoods without a closed form

    @property
    def n_draws(self) -> int:
        """S, or 1 without draws."""
        drawn = (noise for level in [*self.levels, [self.likelihood]] for noise in level)
        return next((len(noise) for noise in drawn if noise is not None), 1)


def pool(parts: list[Predictive]) -> Predictive:
    """One mixture over the samples of several mixtures (dimension S)."""
    return join(parts, 0)


class MultiTaskDGP(nn.Module):
    """A deep GP of several tasks under the doubly stochastic variational approximation.

    ELBO = Σ_t Σ_n E_q(f_n^t)[log p(y_n^t | f_n^t)] − Σ KL[q(u) ‖ p(u)] summed over all processes of
    all layers.  The expectation over the features λ is a mean over S samples; the expectation over
    f given λ is in closed form if possible.

    Source: Boustati (2021), eqs. (3.13) and (3.14).
    """

    def __init__(
        self,
        levels: Sequence[Level],
        top: Top,
        likelihood: Likelihood,
        n_tasks: int,
        pass_inputs: bool,
        process_names: list[str],
    ):
        super().__init__()
        self.levels = nn.ModuleList(levels)
        self.top = top
        self.likelihood = likelihood
        self.n_tasks = n_tasks
        self.pass_inputs = pass_inputs
        self.process_names = process_names

    def _levels(self) -> list[Level]:
        return cast("list[Level]", list(self.levels))  # a ModuleList loses the type of its modules

    # The bound
    def sample_layer_noise(
        self, x: Tensor, layout: Layout, S: int, generator: torch.Generator
    ) -> DGPNoise:
        """Noise for S samples at x [B, D] and the labels of a layout."""

        def draw(shape: tuple[int, ...]) -> Tensor | None:
            if not shape[-1]:
                return None
            return standard_normal(shape, generator, x)

        levels = [
            [draw(s) for s in level.noise_shapes(S, x.shape[0], layout)] for level in self._levels()
        ]
        outputs = self.likelihood.outputs if self.likelihood.samples_f else 0
        return DGPNoise(layout, levels, draw((S, self.n_tasks, layout.n_rows, outputs)))

    def draw_noise(self, batch: Batch, n_samples: int, generator: torch.Generator) -> DGPNoise:
        """Noise of S = ``n_samples`` Monte-Carlo samples, for ``elbo`` on the same batch."""
        return self.sample_layer_noise(
            batch.x, Layout.of(batch.mask, batch.x.dtype), n_samples, generator
        )

    def features(self, x: Tensor, noise: DGPNoise) -> tuple[Tensor, list[LayerTerms]]:
        """Samples of Λ^t [S, T, n, D] at x [B, D]; divergence and jitter of each layer below the
        top."""
        features: Features = (x.unsqueeze(0), None)
        terms: list[LayerTerms] = []
        for level, eps in zip(self._levels(), noise.levels, strict=True):
            features, of_level = level(features, noise.layout, eps)
            terms += of_level
        return self._join(features, x, noise.layout), terms

    def _join(self, features: Features, x: Tensor, layout: Layout) -> Tensor:
        """Λ^t [S, T, n, D], with the inputs if they are passed to the top layer."""
        combined = join_features(features, layout)
        if not self.pass_inputs:
            return combined
        inputs = layout.gather(x.unsqueeze(0)).expand(combined.shape[0], -1, -1, -1)
        return torch.cat([combined, inputs], -1)

    def elbo(self, batch: Batch, noise: DGPNoise) -> dict[str, Tensor]:
        """elbo = scale · Σ observed E[log p(y|f)] − KL, in nats; also its two terms and the jitter
        added to K_zz."""
        features, terms = self.features(batch.x, noise)
        mean, variance, of_top = self.top(features)
        terms.append(of_top)
        expected = self.likelihood.expected_log_prob(
            noise.layout.labels(batch.y), mean, variance, noise.likelihood
        )
        weight = noise.layout.weight
        total = expected.sum() if weight is None else (expected * weight).sum()
        log_likelihood = total * (batch.scale / expected.shape[0])
        kl = torch.stack([layer.kl for layer in terms]).sum()  # over every process of every layer
        return {
            "elbo": log_likelihood - kl,
            "log_likelihood": log_likelihood,
            "kl": kl,
            "jitter": torch.tensor(max(layer.jitter for layer in terms)),
        }

    # Predictions
    def sample_predictive(self, x: Tensor, n: int, generator: torch.Generator) -> Predictive:
        """p(y*|x*) as a mixture over samples of λ, for every task at every row of x [B, D];
        differentiable in x."""
        parts = [
            self.likelihood.predictive(*moments, likelihood)
            for moments, likelihood in self._sample_top_moments(x, n, generator)
        ]
        return pool(parts)

    def predict_f(self, x: Tensor, n: int, generator: torch.Generator) -> Predictive:
        """p(y | f) at n draws of λ, and of f given each, separately for every row of x [B, D]."""
        tops = self._sample_top_moments(x, n, generator)
        return pool(
            [
                predictive_at_draws(self.likelihood, *moments, len(moments[0]), generator)
                for moments, _ in tops
            ]
        )

    @torch.no_grad()
    def sample_prior_f(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """p(y | f) at one draw of every layer from its prior, jointly at x [B, D]: S = 1.

        Source: Boustati (2021), section 2.1.2.3, eqs. (2.22) to (2.24)."""
        layout = Layout.full(self.n_tasks, x.shape[0])
        features: Features = (x.unsqueeze(0), None)
        for level in self._levels():
            features = level.propagate(features, layout, generator, GPLayer.sample_prior)
        f = self.top.sample_prior(self._join(features, x, layout), generator)
        zeros = torch.zeros_like(f)
        return self.likelihood.predictive(f, zeros, zeros)

    def _sample_top_moments(
        self, x: Tensor, n: int, generator: torch.Generator
    ) -> Iterator[tuple[tuple[Tensor, Tensor], Tensor | None]]:
        """Moments of f at x given n samples of λ in total, with the noise of the likelihood."""
        layout = Layout.full(self.n_tasks, x.shape[0])
        most = max(layer.q_mean.numel() for layer in self.variational_layers().values())
        chunk = max(1, min(n, PREDICTION_ELEMENTS // (most * x.shape[0])))
        for start in range(0, n, chunk):
            noise = self.sample_layer_noise(x, layout, min(chunk, n - start), generator)
            features, _ = self.features(x, noise)
            mean, variance, _ = self.top(features)
            yield (mean, variance), noise.likelihood

    # Figures and natural gradients
    def variational_layers(self) -> dict[str, GPLayer]:
        """Every GP layer by name ("shared 1", "specific 1", …, "top"), bottom to top."""
        return {m.name: m for m in self.modules() if isinstance(m, GPLayer)}

    def noise_parameters(self) -> list[nn.Parameter]:
        """Parameters of the observation noise, which ``noise_warmup`` keeps fixed."""
        return self.likelihood.noise_parameters()

    @torch.no_grad()
    def ard_weights(self) -> Tensor:
        """ω = 1/ℓ² of the top layer by task and process [T, D], eq. (3.15); ``process_names`` gives
        the columns."""
        return torch.exp(-2 * self.top.layer.log_lengthscale).expand(self.n_tasks, -1).clone()

    @property
    def n_levels(self) -> int:
        """Number of levels below the top layer."""
        return len(self.levels)

    def inducing_inputs(self) -> dict[str, Tensor]:
        """Current Z of each layer, [G, M, D]."""
        return {name: layer.inducing.detach() for name, layer in self.variational_layers().items()}

    def initial_inducing_inputs(self) -> dict[str, Tensor]:
        """Initial Z of each layer, [G, M, D]."""
        return {name: layer.initial_inducing for name, layer in self.variational_layers().items()}
