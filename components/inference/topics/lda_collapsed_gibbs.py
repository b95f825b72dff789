"""Collapsed Gibbs sampling of topics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from pydantic import NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.capabilities import TopicModel
from components.contracts.problems import Counts, Sees
from components.contracts.roles import Inference, Info
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.maths.topics.collapsed import sweep, word_counts
from components.posteriors.topics import Topics
from components.problems.corpus import Corpus
from components.registry import register


@dataclass(kw_only=True)
class Assigning:
    """Topics of all words in C chains, and the counts that were kept."""

    model: TopicModel = rebuilt()
    words: Tensor = rebuilt()  # [M] on the CPU, document after document, a word as often as it is there
    totals: Tensor = rebuilt()  # words of each document [N]
    z: Tensor  # [C, M]
    t: int = 0  # sweeps done
    kept: Trace = field(default_factory=Trace)  # rows n_vk [C, V, K], int32


@register("inference", "lda_collapsed_gibbs")
class LdaCollapsedGibbs(Inference[TopicModel, Corpus, Counts, Assigning]):
    """Gibbs sampler of latent Dirichlet allocation with π and B summed out, C chains; one sweep over all words a step.

        z_i ~ p(z_i = k | z without i, y) ∝ (α_k + n_dk)(η_w + n_wk) / (Σ η + n_k),   counts without word i
        E[B_kv | z, y] = (η_v + n_vk) / (Σ η + n_k)

    Chains begin with topics drawn evenly.  After ``burn_in`` sweeps the counts of every ``thinning``-th are kept, and E[B | z, y]
    of each is one of the posterior's sets of topics: what is foretold is their mean, whatever the numbers of topics mean in each.
    Compiled where numba is installed, otherwise a loop of Python, with the same numbers; on the CPU.  z [C, M], M words.  Info:
    ``log_joint``, log p(y, z) of the first chain, nats.

    Source: Griffiths and Steyvers (2004), eqs. (2) to (6); Bardenet (2021), section 4.2 (Gibbs) and eq. (5.6) (the model)."""

    kinds: ClassVar[frozenset[str]] = frozenset({"unlabelled"})
    sees: ClassVar[Sees] = "whole"
    needs: ClassVar[frozenset[str]] = frozenset({"topic_model"})
    gives: ClassVar[frozenset[str]] = frozenset({"holds_topics"})
    chains: PositiveInt
    burn_in: NonNegativeInt
    thinning: PositiveInt

    def init(self, model: TopicModel, problem: Corpus, rng: Rng) -> Assigning:
        documents = problem.train
        words, totals = documents.words.repeat_interleave(documents.counts).cpu(), documents.totals.cpu()
        z = torch.randint(len(model.alpha), (self.chains, len(words)), generator=rng.init)
        return Assigning(model=model, words=words, totals=totals, z=z)

    def step(self, state: Assigning, batch: Counts, rng: Rng) -> tuple[Assigning, Info]:
        alpha, eta = state.model.alpha.cpu(), state.model.eta.cpu()
        u = torch.rand(state.z.shape, generator=rng.noise, dtype=torch.float64)
        z = torch.stack(
            [sweep(state.words, state.totals, *own, alpha, eta) for own in zip(state.z, u, strict=True)]
        )
        t = state.t + 1
        if t > self.burn_in and (t - self.burn_in) % self.thinning == 0:
            n = [word_counts(state.words, own, len(eta), len(alpha)).int() for own in z]
            state.kept.append(torch.stack(n))
        joint = log_joint(state.words, state.totals, z[0], alpha, eta)
        return replace(state, z=z, t=t), {"log_joint": joint, "draws": len(state.kept)}

    def posterior(self, state: Assigning) -> Topics:
        alpha, eta = state.model.alpha, state.model.eta
        if len(state.kept):
            n = state.kept.rows.flatten(0, 1)  # [S·C, V, K]
        else:
            n = torch.stack([word_counts(state.words, z, len(eta), len(alpha)) for z in state.z])
        lam = n.to(eta) + eta[:, None]
        return Topics((lam / lam.sum(1, keepdim=True)).transpose(1, 2), alpha)


def log_joint(words: Tensor, totals: Tensor, z: Tensor, alpha: Tensor, eta: Tensor) -> Tensor:
    """log p(y, z) [], with π and B summed out.

        Σ_d log [B(α + n_d) / B(α)] + Σ_k log [B(η + n_k) / B(η)],   log B(a) = Σ log Γ(a_k) − log Γ(Σ a_k)

    Source: Griffiths and Steyvers (2004), eqs. (2), (3)."""
    K, documents = len(alpha), torch.arange(len(totals)).repeat_interleave(totals)
    n_d = torch.bincount(documents * K + z, minlength=len(totals) * K).view(-1, K)
    n_k = word_counts(words, z, len(eta), K).T
    return _dirichlet_multinomial(n_d, alpha) + _dirichlet_multinomial(n_k, eta)


def _dirichlet_multinomial(n: Tensor, prior: Tensor) -> Tensor:
    """Σ_i log B(a + n_i) − log B(a) [], counts n [I, D]."""
    total = prior.sum()
    out = (prior + n).lgamma().sum() - (total + n.sum(1)).lgamma().sum()
    return out - len(n) * (prior.lgamma().sum() - total.lgamma())
