"""Base class of inference methods for topics."""

from __future__ import annotations

from typing import Generic

from torch import Tensor
from typing_extensions import TypeVar

from components.contracts.capabilities import TopicModel
from components.contracts.problems import Counts
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference
from components.topics.corpus import Corpus

S = TypeVar("S")


def mean_topics(lam: Tensor) -> Tensor:
    """Compute E B of B_k ~ Dir(λ_k), λ [..., K, V]."""
    return lam / lam.sum(-1, keepdim=True)


class TopicInference(Inference[TopicModel, Corpus, Counts, S], Generic[S]):
    """Base class of inference methods for topics."""

    requires = Requirements(kinds={"unlabelled"}, batch_kind="whole", capabilities={TopicModel})
