"""Levels of a multi-task deep GP: latent features as functions of the level below.

Features of a batch are the pair (g, h): g [S, B, P] of shared processes, at the B rows; h [S, T, n,
J] of task-specific processes, at the rows of each task.  S = 1 before any sampling.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from components.maths.sparse_gp import LayerMoments, LayerTerms
from components.models.deep_gp.layer import GPLayer
from components.models.deep_gp.layout import Layout

Features = tuple[Tensor | None, Tensor | None]
# functions of a layer at x [N, D] or [G, N, D]: [G, Q, N]
Draw = Callable[[GPLayer, Tensor, torch.Generator], Tensor]


def join_features(features: Features, layout: Layout) -> Tensor:
    """Λ^t: shared features at each task's rows, then task-specific ones, [S, T, n, P + J]."""
    g, h = features
    if g is None or h is None:
        only = h if g is None else layout.gather(g)
        assert only is not None
        return only
    return torch.cat([layout.gather(g), h], -1)


def fold_samples(x: Tensor) -> Tensor:
    """[S, T, n, D] -> [T, S · n, D]: Monte-Carlo samples folded into the data axis."""
    S, T, n, D = x.shape
    return x.transpose(0, 1).reshape(T, S * n, D)


def sample(mean: Tensor, variance: Tensor, noise: Tensor | None) -> Tensor:
    """mean + √variance · noise; the mean itself without noise."""
    return mean if noise is None else torch.addcmul(mean, variance.sqrt(), noise)


def moments_of_rows(layer: GPLayer, x: Tensor) -> LayerMoments:
    """Mean and variance of the processes of a layer at x [S, B, D], [S, B, Q]."""
    S, B, D = x.shape
    mean, variance, terms = layer(x.reshape(S * B, D))  # [G, Q, S · B]
    return (
        mean.reshape(-1, S, B).permute(1, 2, 0),
        variance.reshape(-1, S, B).permute(1, 2, 0),
        terms,
    )


class SharedSpecificProcesses(nn.Module):
    """Independent shared processes g_i and task-specific processes h_j^t, concatenated (the MDGP of
    section 3.3.1).

    Source: Boustati (2021), section 3.3.1 and mMDGP, sMDGP in section 3.3.2.
    """

    def __init__(self, shared: GPLayer | None, specific: GPLayer | None, n_tasks: int):
        super().__init__()
        self.shared = shared
        self.specific = specific
        self.n_tasks = n_tasks
        self.shared_dim = 0 if shared is None else shared.q_mean.shape[0] * shared.n_outputs
        self.specific_dim = (
            0 if specific is None else specific.q_mean.shape[0] * specific.n_outputs // n_tasks
        )

    def noise_shapes(self, S: int, B: int, layout: Layout) -> list[tuple[int, ...]]:
        return [(S, B, self.shared_dim), (S, self.n_tasks, layout.n_rows, self.specific_dim)]

    def _specific_inputs(self, features: Features, layout: Layout) -> Tensor:
        assert self.specific is not None
        x = fold_samples(join_features(features, layout))
        # [T · groups, S · n, D]
        return x.repeat_interleave(self.specific.q_mean.shape[0] // self.n_tasks, 0)

    def _unfold(self, f: Tensor, S: int) -> Tensor:
        T = self.n_tasks
        J = self.specific_dim
        return f.reshape(T, J, S, -1).permute(2, 0, 3, 1)  # [S, T, n, J]

    def forward(
        self, features: Features, layout: Layout, noise: list[Tensor | None]
    ) -> tuple[Features, list[LayerTerms]]:
        """Samples of this level's features, and divergence and jitter of its layers."""
        g = None
        h = None
        terms = []
        if self.shared is not None:
            assert features[0] is not None
            mean, variance, of_shared = moments_of_rows(self.shared, features[0])
            g = sample(mean, variance, noise[0])
            terms.append(of_shared)
        if self.specific is not None:
            x = self._specific_inputs(features, layout)
            mean, variance, of_specific = self.specific(x)
            S = x.shape[1] // layout.n_rows
            h = sample(self._unfold(mean, S), self._unfold(variance, S), noise[1])
            terms.append(of_specific)
        return (g, h), terms

    def propagate(
        self,
        features: Features,
        layout: Layout,
        generator: torch.Generator,
        draw: Draw = GPLayer.propagate,
    ) -> Features:
        """Representative features (``GPLayer.propagate``), which initialise the next level's
        inducing inputs, or draws from the prior (``GPLayer.sample_prior``)."""
        g = None
        h = None
        if self.shared is not None:
            assert features[0] is not None
            S, B, D = features[0].shape
            g = (
                draw(self.shared, features[0].reshape(S * B, D), generator)
                .reshape(-1, S, B)
                .permute(1, 2, 0)
            )
        if self.specific is not None:
            x = self._specific_inputs(features, layout)
            h = self._unfold(draw(self.specific, x, generator), x.shape[1] // layout.n_rows)
        return g, h


class CoregionalisedLevel(nn.Module):
    """Base processes u_q shared by the tasks and mixed linearly, λ^t_k = Σ_q W^t_kq u_q (the cMDGP
    of section 3.3.2).

    Source: Boustati (2021), cMDGP in section 3.3.2.
    """

    def __init__(self, base: GPLayer, mixing: Tensor, first: bool):
        super().__init__()
        self.base = base
        self.first = first
        self.mixing = nn.Parameter(mixing)  # [T, K, Q]
        self.shared_dim = 0
        self.specific_dim = mixing.shape[1]

    def noise_shapes(self, S: int, B: int, layout: Layout) -> list[tuple[int, ...]]:
        rows = B if self.first else layout.n_tasks * layout.n_rows
        return [(S, rows, self.mixing.shape[2])]

    def mix(self, u: Tensor) -> Tensor:
        return torch.matmul(u, self.mixing.mT)  # [S, T, n, Q] · [T, Q, K]

    def forward(
        self, features: Features, layout: Layout, noise: list[Tensor | None]
    ) -> tuple[Features, list[LayerTerms]]:
        """Sample the base processes: at the B rows in the first level, at each task's λ^t in deeper
        levels."""
        g, h = features
        if self.first:
            assert g is not None
            mean, variance, terms = moments_of_rows(self.base, g)
            return (None, self.mix(layout.gather(sample(mean, variance, noise[0])))), [terms]
        assert h is not None
        S, T, n, D = h.shape
        mean, variance, terms = moments_of_rows(self.base, h.reshape(S, T * n, D))
        u = sample(mean, variance, noise[0])
        return (None, self.mix(u.reshape(-1, T, n, u.shape[-1]))), [terms]

    def propagate(
        self,
        features: Features,
        layout: Layout,
        generator: torch.Generator,
        draw: Draw = GPLayer.propagate,
    ) -> Features:
        """See ``SharedSpecificProcesses.propagate``."""
        g, h = features
        x = g if h is None else h.flatten(1, 2)
        assert x is not None
        S, B, D = x.shape
        u = draw(self.base, x.reshape(S * B, D), generator).reshape(-1, S, B).permute(1, 2, 0)
        return None, self.mix(layout.gather(u) if h is None else u.reshape(*h.shape[:3], -1))


Level = SharedSpecificProcesses | CoregionalisedLevel
