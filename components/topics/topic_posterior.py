"""Base class of inference methods for topics."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Generic

from torch import Tensor
from typing_extensions import TypeVar

from components.contracts.capabilities import TopicModel
from components.contracts.problems import Counts
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import not_checkpointed, placed
from components.contracts.streams import Rng, seed_from
from components.topics.corpus import Corpus, Topics

S = TypeVar("S")


def mean_topics(lam: Tensor) -> Tensor:
    """Compute E B of B_k ~ Dir(λ_k), λ [..., K, V]."""
    return lam / lam.sum(-1, keepdim=True)


class TopicInference(Inference[TopicModel, Corpus, Counts, S], Generic[S]):
    """Base class of inference methods for topics."""

    requires = Requirements(kinds={"unlabelled"}, batch_kind="whole", capabilities={TopicModel})


@dataclass(frozen=True, kw_only=True)
class FittedTopics:
    """Topics of another package."""

    model: TopicModel = not_checkpointed()
    lam: Tensor | None = placed()  # of q(B) [K, V]


class PackageTopics(TopicInference[FittedTopics]):
    """Topics fitted by another package, which processes all documents in the first step."""

    max_useful_steps = 1

    @abstractmethod
    def fit(self, model: TopicModel, documents: Counts, seed: int) -> Tensor:
        """λ [K, V] of the Dirichlet distributions of the topics."""

    def init(self, model: TopicModel, problem: Corpus, rng: Rng) -> FittedTopics:
        return FittedTopics(model=model)

    def step(self, state: FittedTopics, batch: Counts, rng: Rng) -> tuple[FittedTopics, Info]:
        if state.lam is None:
            lam = self.fit(state.model, batch, seed_from(rng.init))
            state = replace(state, lam=lam.to(state.model.eta))
        return state, {}

    def posterior(self, state: FittedTopics) -> Topics:
        assert state.lam is not None
        return Topics(mean_topics(state.lam)[None], state.model.alpha)
