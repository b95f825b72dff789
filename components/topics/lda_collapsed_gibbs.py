"""Collapsed Gibbs sampling of topics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

import torch
from pydantic import Field, NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.capabilities import TopicModel
from components.contracts.costs.counts import count
from components.contracts.problems import Counts
from components.contracts.roles import Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.contracts.traces import Trace, is_kept_step
from components.registry import register
from components.topics.corpus import Corpus, Topics
from components.topics.maths.collapsed import sweep, word_counts
from components.topics.topic_posterior import TopicInference

SWEEPS_PER_LOG_JOINT = 10  # sweeps between reports of log p(y, z), which costs a third of a sweep


@dataclass(kw_only=True)
class LdaCollapsedGibbsState:
    """Topics of all words in R starts (one after burn-in), and the stored counts."""

    model: TopicModel = not_checkpointed()
    # [M] on the CPU: all words of the first document, then of the next
    words: Tensor = not_checkpointed()
    totals: Tensor = not_checkpointed()  # words of each document [N]
    z: Tensor  # [R, M]
    t: int = 0  # number of sweeps
    kept: Trace = field(default_factory=Trace)  # rows n_vk [V, K], int32


@register("inference", "lda_collapsed_gibbs")
class LdaCollapsedGibbs(TopicInference[LdaCollapsedGibbsState]):
    """Gibbs sampler of latent Dirichlet allocation with π and B integrated out; a step is one sweep
    over all words.

        z_i ~ p(z_i = k | z without i, y) ∝ (α_k + n_dk)(η_w + n_wk) / (Σ η + n_k),   counts without word i
        E[B_kv | z, y] = (η_v + n_vk) / (Σ η + n_k)

    Chains with merged or duplicated topics mix too slowly to correct them. Therefore α is
    multiplied by ``heat`` at first, decreasing geometrically to 1 over the first half of
    ``burn_in``, and ``starts`` chains begin with uniform random topics; after burn-in, only the one
    with the highest p(y, z) continues. Then the counts of every ``thinning``-th sweep are stored,
    and E[B | z, y] of each is one set of topics of the posterior; predictions are averaged over
    sets, so that the order of topics in each does not matter.  The sweeps are compiled and run on
    the CPU. z [R, M], M words. Info: ``log_joint``, the highest log p(y, z) in nats, in every tenth
    sweep.

    Source: Griffiths and Steyvers (2004), eqs. (2) to (6); Bardenet (2021), eq. (5.6) (the
    model)."""

    starts: PositiveInt
    heat: Annotated[float, Field(ge=1)]
    burn_in: NonNegativeInt
    thinning: PositiveInt

    def init(self, model: TopicModel, problem: Corpus, rng: Rng) -> LdaCollapsedGibbsState:
        documents = problem.train
        words = documents.words.repeat_interleave(documents.counts).cpu()
        totals = documents.totals.cpu()
        z = torch.randint(len(model.alpha), (self.starts, len(words)), generator=rng.init)
        return LdaCollapsedGibbsState(model=model, words=words, totals=totals, z=z)

    def step(
        self, state: LdaCollapsedGibbsState, batch: Counts, rng: Rng
    ) -> tuple[LdaCollapsedGibbsState, Info]:
        alpha = state.model.alpha.cpu()
        eta = state.model.eta.cpu()
        z = state.z
        if state.t == self.burn_in:
            z = z[log_joints(state).argmax()][None]
        if 2 * state.t < self.burn_in:
            alpha = alpha * self.heat ** (1 - 2 * state.t / self.burn_in)
        u = torch.rand(
            z.shape, generator=rng.noise, dtype=torch.float64, device=rng.noise.device
        ).cpu()
        z = torch.stack(
            [sweep(state.words, state.totals, *pair, alpha, eta) for pair in zip(z, u, strict=True)]
        )
        count(forwards=len(z) * batch.n_rows)
        t = state.t + 1
        if is_kept_step(t, self.burn_in, self.thinning):
            state.kept.append(word_counts(state.words, z[0], len(eta), len(alpha)).int())
        state, info = replace(state, z=z, t=t), Info(draws=len(state.kept))
        if t % SWEEPS_PER_LOG_JOINT == 0:
            info["log_joint"] = log_joints(state).max()
        return state, info

    def posterior(self, state: LdaCollapsedGibbsState) -> Topics:
        alpha = state.model.alpha
        eta = state.model.eta
        if len(state.kept):
            n = state.kept.rows  # [S, V, K]
        else:
            best = state.z[log_joints(state).argmax()]
            n = word_counts(state.words, best, len(eta), len(alpha))[None]
        lam = n.to(eta) + eta[:, None]
        return Topics((lam / lam.sum(1, keepdim=True)).transpose(1, 2), alpha)


def log_joints(state: LdaCollapsedGibbsState) -> Tensor:
    """Compute log p(y, z) of each start, [R]."""
    alpha = state.model.alpha.cpu()
    eta = state.model.eta.cpu()
    return torch.stack([log_joint(state.words, state.totals, z, alpha, eta) for z in state.z])


def log_joint(words: Tensor, totals: Tensor, z: Tensor, alpha: Tensor, eta: Tensor) -> Tensor:
    """Compute log p(y, z) [], with π and B integrated out.

        Σ_d log [B(α + n_d) / B(α)] + Σ_k log [B(η + n_k) / B(η)],   log B(a) = Σ log Γ(a_k) − log Γ(Σ a_k)

    Source: Griffiths and Steyvers (2004), eqs. (2), (3)."""
    K = len(alpha)
    documents = torch.arange(len(totals)).repeat_interleave(totals)
    n_d = torch.bincount(documents * K + z, minlength=len(totals) * K).view(-1, K)
    n_k = word_counts(words, z, len(eta), K).T
    return _dirichlet_multinomial(n_d, alpha) + _dirichlet_multinomial(n_k, eta)


def _dirichlet_multinomial(n: Tensor, prior: Tensor) -> Tensor:
    """Compute Σ_i log B(a + n_i) − log B(a) [], counts n [I, D]."""
    total = prior.sum()
    out = (prior + n).lgamma().sum() - (total + n.sum(1)).lgamma().sum()
    return out - len(n) * (prior.lgamma().sum() - total.lgamma())
