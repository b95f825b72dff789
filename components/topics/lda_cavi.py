"""Coordinate ascent variational inference for topics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import TopicModel
from components.contracts.costs.counts import count
from components.contracts.problems import Counts
from components.contracts.roles import Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.errors import NumericalError
from components.registry import register
from components.topics.bound_figure import bounds_figure
from components.topics.corpus import Corpus, Topics
from components.topics.maths.document_factors import fit_documents
from components.topics.starts import evenly, log_weights, sample_topics, topic_elbo
from components.topics.topic_posterior import TopicInference, mean_topics

if TYPE_CHECKING:
    from components.figures.style import Figures


@dataclass(frozen=True)
class BestStartTopics(Topics):
    """Topics of the best of R starts, and the ELBO of each after every pass."""

    bounds: Tensor  # ELBO of the training documents, nats [T, R]
    fresh: int  # passes in which the factors of documents restarted

    def scores(self) -> dict[str, float]:
        """Return ``elbo`` of the best start in nats, and its difference to the worst start
        (``elbo_spread``)."""
        if not len(self.bounds):
            return {}
        last = self.bounds[-1]
        return {"elbo": float(last.max()), "elbo_spread": float(last.max() - last.min())}

    def figures(self) -> Figures:
        return bounds_figure(self.bounds, self.fresh)


ROUNDING = 1e-10  # relative tolerance for decreases of the bound


@dataclass(kw_only=True)
class SideBySide:
    """State of R parallel starts."""

    model: TopicModel = not_checkpointed()
    lam: Tensor  # of q(B) [R, V, K]
    gamma: Tensor  # of q(π) [R, N, K]
    t: int = 0  # number of passes
    bounds: Trace = field(default_factory=Trace)  # rows of the ELBO [R]


@register("inference", "lda_cavi")
class LdaCavi(TopicInference[SideBySide]):
    """Mean-field variational Bayes for latent Dirichlet allocation by coordinate ascent.

        φ_djk ∝ exp(Ψ_k(γ_d) + Ψ_j(λ_k)),   γ_dk = α_k + Σ_j n_dj φ_djk
        λ_kv = η_v + Σ_d n_dv φ_dvk,   Ψ_k(a) = ψ(a_k) − ψ(Σ a)

    A step is one pass over all documents.  n_dj is the count of word j in document d; equal words
    in a document share φ.  In a pass, φ and γ of each document are updated alternately until the
    mean change of γ is below ``tolerance``, or ``updates`` times, and then λ once.  In the first
    ``fresh_passes`` γ starts at α + L/K, afterwards at its previous
    value: with warm starts in all passes, a topic that merges two true ones would never split.  In
    warm passes every update raises the ELBO, which is asserted.  Of ``starts`` parallel starts, the
    one with the highest ELBO gives the posterior.  γ [R, N, K], λ [R, V, K].
    Info: ``elbo`` of the best and of each start, nats, before λ moves; ``updates`` of γ,
    mean over documents.

    Raises:
        NumericalError: the ELBO falls in a warm pass.

    Source: Bardenet (2021), section 5.2.1; Blei, Ng and Jordan (2003), section 5.2.
    """

    starts: PositiveInt
    fresh_passes: NonNegativeInt
    updates: PositiveInt
    tolerance: PositiveFloat

    def init(self, model: TopicModel, problem: Corpus, rng: Rng) -> SideBySide:
        gamma = evenly(model, problem.train).repeat(self.starts, 1, 1)
        return SideBySide(model=model, lam=sample_topics(model, self.starts, rng.init), gamma=gamma)

    @torch.no_grad()
    def step(self, state: SideBySide, batch: Counts, rng: Rng) -> tuple[SideBySide, Info]:
        model = state.model
        warm = state.t >= self.fresh_passes
        lam = []
        gamma = []
        bounds = []
        updates = []
        for lam_now, last_gamma in zip(state.lam, state.gamma, strict=True):
            begin = last_gamma if warm else evenly(model, batch)
            weights = log_weights(lam_now).exp()
            factors = fit_documents(
                batch.pairs, weights, model.alpha, begin, self.updates, self.tolerance
            )
            count(forwards=int(factors.passes.sum()))
            bounds.append(topic_elbo(model, batch, factors, lam_now))
            lam.append(model.eta[:, None] + factors.stats)
            gamma.append(factors.gamma)
            updates.append(factors.passes.double().mean())
        elbo = torch.stack(bounds)
        if warm and state.t:
            check_bound_increase(state.bounds.rows[-1], elbo)
        state.bounds.append(elbo.cpu())
        info = {"elbo": elbo.max(), "updates": torch.stack(updates).mean()}
        info |= (
            {f"elbo/start {r + 1}": value for r, value in enumerate(elbo)}
            if self.starts > 1
            else {}
        )
        return replace(state, lam=torch.stack(lam), gamma=torch.stack(gamma), t=state.t + 1), info

    def posterior(self, state: SideBySide) -> BestStartTopics:
        bounds = state.bounds.rows if state.t else state.lam.new_zeros(0, self.starts).cpu()
        best = int(bounds[-1].argmax()) if state.t else 0
        return BestStartTopics(
            topics=mean_topics(state.lam[best].T)[None],
            alpha=state.model.alpha,
            bounds=bounds,
            fresh=self.fresh_passes,
        )


def check_bound_increase(before: Tensor, after: Tensor) -> None:
    """Raise NumericalError if the bound of a start decreased or is NaN."""
    after = after.cpu()
    least = before - (1e3 if before.dtype == torch.float32 else 1) * ROUNDING * before.abs()
    if not bool((after >= least).all()):
        r = int((after - before).argmin())
        raise NumericalError(
            f"the ELBO of start {r + 1} fell from {float(before[r]):.6f} to {float(after[r]):.6f} in a warm pass",
            "use dtype=float64, or a larger model.alpha",
        )
