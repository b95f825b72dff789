"""The topics of the best of several starts, and what became of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from components.figures.topics.bounds import bounds_figure
from components.posteriors.topics import Topics

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class BestStartTopics(Topics):
    """The topics of the best of R starts, and the bound of each after every pass."""

    bounds: Tensor  # ELBO of the training documents, nats [T, R]
    fresh: int  # passes of these in which the factors of documents began afresh

    def scores(self) -> dict[str, float]:
        """``elbo`` of the best start in nats, and its lead over the worst start
        (``elbo_spread``)."""
        if not len(self.bounds):
            return {}
        last = self.bounds[-1]
        return {"elbo": float(last.max()), "elbo_spread": float(last.max() - last.min())}

    def figures(self) -> dict[str, Figure]:
        return bounds_figure(self.bounds, self.fresh)
