"""A network under Gaussian noise, which predicts by majority vote and certifies its prediction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from components.contracts.capabilities import Network
from components.contracts.capabilities.networks import ReversesInputs
from components.contracts.predictive import (
    Categorical,
    ReversedPredictive,
    top_class,
)
from components.maths.divergences.binomial_bound import lower_bound
from components.maths.exponential.standard_draws import standard_normal
from components.posteriors.point_estimate import PointEstimate

ROWS = 1 << 14  # number of noisy rows in one pass through the network


class CertifiedVotes(NamedTuple):
    """Classes of a smoothed classifier and the L2 balls in which they do not change."""

    guess: Tensor  # ĉ_A [B, T]
    radius: Tensor  # R [B, T], double precision; 0: abstains


@dataclass(frozen=True)
class SmoothedNetwork:
    """The smoothed classifier of a network f: the class that f predicts most often under noise.

        g(x) = argmax_c P(f(x + η) = c),  η ~ N(0, σ² I)

    Noise may exceed the bounds of the inputs and is not clipped.
    """

    network: Network
    sigma: float  # σ, in the units of the inputs
    votes: int  # S, draws of η for a prediction
    selection_draws: int  # n₀, draws that choose ĉ_A
    certificate_draws: int  # n, draws that bound p_A
    level: float  # α, probability that a certificate is wrong

    @property
    def undefended(self) -> PointEstimate:
        """The network itself, without noise."""
        return PointEstimate(self.network)

    def predict(self, x: Tensor, generator: torch.Generator) -> Categorical:
        """Shares of the votes at x [B, D] (``vote_logits``); differentiable in x."""
        blocks = self._noisy(x, self.votes, generator)
        f = torch.cat([self.network(z).unflatten(0, (-1, len(x))) for z in blocks])
        return Categorical(vote_logits(f)[None])

    def reverse(self, x: Tensor, generator: torch.Generator) -> ReversedPredictive:
        """Predictive, and a function from ∂/∂f [1, B, T, C] to ∂/∂x [B, D] without autograd graph;
        None if not available for the network."""
        network = self.network
        if not isinstance(network, ReversesInputs):
            return None
        pairs = [network.reverse(z) for z in self._noisy(x, self.votes, generator)]
        available = [pair for pair in pairs if pair is not None]
        if len(available) < len(pairs):
            return None
        f = [outputs.unflatten(0, (-1, len(x))) for outputs, _ in available]
        log_p = torch.cat(f).log_softmax(-1)  # [S, B, T, C]

        def back(g: Tensor) -> Tensor:
            share = (log_p - log_p.logsumexp(0)).exp() * g[0]  # g_c p_sc / Σ_s p_sc
            slopes = share - log_p.exp() * share.sum(-1, keepdim=True)
            parts = slopes.split([len(outputs) for outputs in f])
            each = [
                pull_back(slope.flatten(0, 1)).unflatten(0, (-1, len(x))).sum(0)
                for (_, pull_back), slope in zip(available, parts, strict=True)
            ]
            return torch.stack(each).sum(0)

        return Categorical(vote_logits(torch.cat(f))[None]), back

    def certify(self, x: Tensor, generator: torch.Generator) -> CertifiedVotes:
        """The class ĉ_A of g at x [B, D] and the radius R within which it does not change.

        ĉ_A is the class with most votes among n₀ draws, p̲_A the Clopper–Pearson lower bound at
        level α on P(f(x + η) = ĉ_A) from n other draws, and R = σ Φ⁻¹(p̲_A) if p̲_A > ½. Otherwise
        the certificate abstains.  For each label the probability that g(x + δ) ≠ ĉ_A for some ‖δ‖₂
        < R is at most α.

        Source: Cohen, Rosenfeld and Kolter (2019), Theorem 1 and CERTIFY.
        """
        with torch.no_grad():
            guess = self._count(x, self.selection_draws, generator).argmax(-1)
            counts = self._count(x, self.certificate_draws, generator)
        k = counts.gather(-1, guess.unsqueeze(-1)).squeeze(-1)
        bound = lower_bound(k.cpu().numpy(), self.certificate_draws, self.level)
        return CertifiedVotes(
            guess, certified_radius(torch.as_tensor(bound), self.sigma).to(x.device)
        )

    def _count(self, x: Tensor, draws: int, generator: torch.Generator) -> Tensor:
        """Votes for each class at x [B, D] among the given number of draws [B, T, C]."""
        blocks = self._noisy(x, draws, generator)
        votes = [count_votes(self.network(z).unflatten(0, (-1, len(x)))) for z in blocks]
        return torch.stack(votes).sum(0)

    def _noisy(self, x: Tensor, draws: int, generator: torch.Generator) -> list[Tensor]:
        """x + η for the given number of draws of η, in blocks of complete draws [S' B, D]."""
        size = max(1, ROWS // max(1, len(x)))
        blocks = []
        for start in range(0, draws, size):
            shape = (min(size, draws - start), *x.shape)
            eta = standard_normal(shape, generator, x)
            blocks.append((x + self.sigma * eta).flatten(0, 1))
        return blocks


def count_votes(f: Tensor) -> Tensor:
    """Number of draws in which each class has the largest output; f [S, B, T, C] -> [B, T, C].

    A draw without a finite largest output votes for no class.
    """
    return one_hot(top_class(f) + 1, f.shape[-1] + 1)[..., 1:].sum(0)


def vote_logits(f: Tensor) -> Tensor:
    """log (n_c + p̄_c) / (S + 1) for S votes, p̄ the mean of softmax f; f [S, B, T, C] -> [B, T,
    C].

    The mean probabilities share one vote, so that they decide ties and no class has probability 0.
    Vote counts have zero gradient: the derivative of log p̄_c is used instead.  If all votes agree,
    the derivative of log p(y) is a multiple of that of log p̄_y, which adaptive attacks follow.

    Source: Salman et al. (2019), section 3.
    """
    S = len(f)
    log_p = f.log_softmax(-1)
    log_p = torch.where(log_p.isnan(), -torch.inf, log_p).logsumexp(0) - math.log(S)
    logits = torch.logaddexp(count_votes(f).to(f).log(), log_p) - math.log(S + 1)
    return logits.detach() + log_p - log_p.detach()


def certified_radius(p: Tensor, sigma: float) -> Tensor:
    """R = σ Φ⁻¹(p) for a lower bound p on the probability of the class, 0 if p ≤ ½.

    Source: Cohen, Rosenfeld and Kolter (2019), eq. (3) with the bound 1 − p on all other classes.
    """
    return (sigma * torch.special.ndtri(p)).clamp_min(0)
