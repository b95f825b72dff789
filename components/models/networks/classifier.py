"""Shared code of networks of standard layers: softmax classes and a Gaussian prior on all
parameters.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from components.contracts.predictive import Categorical
from components.contracts.problems import Batch
from components.maths.compiled.affine import affine
from components.maths.exponential.standard_draws import standard_uniform
from components.problems.supervised import Supervised


def class_log_prob(f: Tensor, y: Tensor) -> Tensor:
    """log softmax(f)_y of every task, f [..., B, T, C] and y [B, T] -> [..., B, T]; a missing label
    is treated as class 0."""
    label = y.clamp_min(0).expand(f.shape[:-1])[..., None]
    return f.log_softmax(-1).gather(-1, label)[..., 0]


class Classifier(nn.Module):
    """p(y_t = c|x) = softmax(f_t(x))_c, and θ ~ N(0, s²) independently for every parameter.

    A subclass builds its parameters, draws them from a random stream of the run instead of the
    global generator, and adds ``features``, the inputs of the last layer, x [B, D] -> [B, F], with
    dropout if a generator is given."""

    head: nn.ParameterList  # W [T C, F], b [T C]

    def __init__(self, problem: Supervised, prior_std: float, dropout: float):
        super().__init__()
        self.n_tasks = problem.n_tasks
        self.n_classes = problem.n_classes
        self.prior_std = prior_std
        self.dropout = dropout
        self._like = problem.train.x[:0]

    def uniform_parameter(
        self, shape: tuple[int, ...], limit: float, generator: torch.Generator
    ) -> nn.Parameter:
        """Uniform values in (−limit, limit)."""
        u = torch.rand(shape, generator=generator, dtype=torch.float64, device=generator.device)
        return nn.Parameter((limit * (2 * u - 1)).to(self._like))

    def constant(self, n: int, value: float) -> nn.Parameter:
        return nn.Parameter(self._like.new_full((n,), value))

    def affine(self, out: int, inside: int, generator: torch.Generator) -> nn.ParameterList:
        """W [out, inside] with Glorot's limits and b = 0 [out]."""
        limit = math.sqrt(6 / (inside + out))
        return nn.ParameterList(
            [self.uniform_parameter((out, inside), limit, generator), self.constant(out, 0.0)]
        )

    def apply_dropout(self, h: Tensor, generator: torch.Generator | None) -> Tensor:
        """Inverted dropout with probability ``dropout``, if a generator is given."""
        if generator is None or self.dropout == 0:
            return h
        mask = standard_uniform(h.shape, generator, h) >= self.dropout
        return h * mask / (1 - self.dropout)

    def features(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        raise NotImplementedError

    def forward(
        self, x: Tensor, generator: torch.Generator | None = None, passes: int | None = None
    ) -> Tensor:
        """f [B, T, C]; with ``passes`` = S, S dropout passes [S, B, T, C]."""
        if passes is not None:
            return torch.stack([self.forward(x, generator) for _ in range(passes)])
        f = affine(self.features(x, generator), *self.head)
        return f.unflatten(-1, (self.n_tasks, self.n_classes))

    def log_prob(self, f: Tensor, batch: Batch) -> Tensor:
        """Σ_t log p(y_t|f_t) over the observed labels: f [..., B, T, C] -> [..., B]."""
        return (class_log_prob(f, batch.y) * batch.mask).sum(-1)

    def penalty(self) -> Tensor:
        """½ Σ θ²/s²: minus the log prior of the parameters, up to a constant."""
        squares = torch.stack([parameter.square().sum() for parameter in self.parameters()])
        return 0.5 * squares.sum() / self.prior_std**2

    def output_predictive(self, f: Tensor) -> Categorical:
        """Mixture over the samples of f [S, B, T, C]."""
        return Categorical(f)
