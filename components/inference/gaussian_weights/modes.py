"""Gaussians around several modes of a network's posterior, weighted by their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from components.contracts.checks import NamedScores
from components.contracts.posteriors import Analyses, Predicts
from components.contracts.predictive import Categorical, GaussianMixture, Predictive
from components.inference.gaussian_weights.linearised import LinearisedPosterior
from components.posteriors.redraws import hold


def distinct(fits: Sequence[LinearisedPosterior]) -> list[LinearisedPosterior]:
    """Fits in order of decreasing evidence, without those at the mode of a better one.

    Two θ̂ share a mode if (θ̂ − θ̂')ᵀ H (θ̂ − θ̂') < m for m weights, so that each lies within the
    draws of the other; weights outside q count with the precision 1/s² of their prior."""
    kept: list[LinearisedPosterior] = []
    for fit in sorted(fits, key=lambda f: -f.log_evidence):
        if all(distance(better, fit) >= len(better.network.theta) for better in kept):
            kept.append(fit)
    return kept


def distance(fit: LinearisedPosterior, other: LinearisedPosterior) -> float:
    """(θ̂' − θ̂)ᵀ H (θ̂' − θ̂)."""
    away = (other.network.theta - fit.network.theta).detach().double()
    m = len(fit.root)
    scaled = fit.root * away[-m:] if fit.root.ndim == 1 else fit.root.T @ away[-m:]
    rest = away[:-m] / fit.network.prior_std.double()[: len(away) - m]
    return float(scaled.square().sum() + rest.square().sum())


@dataclass(frozen=True)
class SeveralModes(Analyses):
    """q(θ) = Σ_k w_k N(θ̂_k, H_k⁻¹), with predictions of the networks linearised at each θ̂_k.

    A prediction is a mixture of S components of equal weight, to which each mode contributes in
    proportion to w_k, rounded."""

    fits: tuple[LinearisedPosterior, ...]  # by evidence, highest first
    n_predict: int  # S

    @property
    def weights(self) -> Tensor:
        """w_k ∝ Laplace's evidence [K]."""
        return torch.tensor([fit.log_evidence for fit in self.fits], dtype=torch.float64).softmax(0)

    def shares(self, total: int) -> list[int]:
        """Number of components for each mode, by largest remainders."""
        exact = self.weights * total
        counts = exact.floor()
        order = (exact - counts).argsort(descending=True)
        counts[order[: total - int(counts.sum())]] += 1
        return [int(n) for n in counts]

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive:
        """Mixture over the modes at x [B, D]; differentiable in x."""
        parts = [
            (n, replace(fit, n_predict=n).predict(x, generator))
            for n, fit in zip(self.shares(self.n_predict), self.fits, strict=True)
            if n
        ]
        gaussian = [(n, p) for n, p in parts if isinstance(p, GaussianMixture)]
        if not gaussian:
            return Categorical(
                torch.cat([p.logits for _, p in parts if isinstance(p, Categorical)])
            )
        mu, v = (
            torch.cat([value.expand(n, *value.shape[1:]) for n, value in pairs])
            for pairs in ([(n, p.mu) for n, p in gaussian], [(n, p.v) for n, p in gaussian])
        )
        return GaussianMixture(mu, v)

    def some(self, n: int, generator: torch.Generator | None) -> Predicts:
        """n linearised networks for each prediction: new draws, or without a generator always the
        same."""
        drawn = tuple(replace(fit, drawn=True) for fit in self.fits)
        return hold(replace(self, fits=drawn, n_predict=n), generator)

    def scores(self) -> NamedScores:
        """Total evidence of all modes, number of distinct modes, and weight of the best."""
        logs = torch.tensor([fit.log_evidence for fit in self.fits], dtype=torch.float64)
        return {
            "log_evidence": float(logs.logsumexp(0)),
            "modes": float(len(self.fits)),
            "largest_weight": float(self.weights[0]),
        }
