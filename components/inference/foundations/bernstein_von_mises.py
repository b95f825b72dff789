"""Distance between a posterior and its Bernstein–von Mises normal limit as N grows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from components.contracts.capabilities import BetaPosterior
from components.contracts.checks import NamedScores
from components.contracts.posteriors import Analyses, PredictsRows
from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import BetweenZeroAndOne, Increasing, Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.inference.foundations.log_slopes import log_slopes
from components.inference.foundations.normal_limit import beta_normal_distances
from components.posteriors.tables import write_tables
from components.problems.unlabelled import Unlabelled
from components.registry import register

if TYPE_CHECKING:
    import pandas as pd

DISTANCES = ("total_variation", "hellinger")
LEAST_MASS = 1e-16  # of a number of heads


@dataclass(frozen=True)
class NormalLimit(Analyses, PredictsRows[Rows]):
    """Expected distances of a posterior from its normal limit at each N, and the observed tosses."""

    model: BetaPosterior
    counts: tuple[int, int]
    numbers: list[int]  # [G]
    distances: Tensor  # total variation and Hellinger [G, 2]; [0, 2] before the first step

    def log_predictive(self, batch: Rows) -> Tensor:
        """log p(x | observed tosses) [B]."""
        return self.model.log_predictive(self.counts, batch)

    def scores(self) -> NamedScores:
        """Distances at each N, and the slope of their log on log N; ``exponent`` is −½, the
        theoretical value unless the skewness at θ₀ is 0."""
        if not len(self.distances):
            return {}
        out: NamedScores = {}
        for name, distances in zip(DISTANCES, self.distances.T, strict=True):
            out[f"slope/{name}"] = float(log_slopes(distances, self.numbers))
            by_number = zip(self.numbers, distances.tolist(), strict=True)
            out |= {f"{name}/{n}": float(v) for n, v in by_number}
        return out | {"exponent": -0.5}

    def table(self) -> pd.DataFrame:
        """One row per N."""
        import pandas as pd

        columns = dict(zip(DISTANCES, self.distances.T.tolist(), strict=True))
        return pd.DataFrame({"n": self.numbers} | columns)

    def artefacts(self, folder: Path) -> list[Path]:
        """The table ``normal_limit``."""
        return write_tables(folder, {"normal_limit": self.table()} if len(self.distances) else {})


@dataclass(frozen=True, kw_only=True)
class LimitState:
    """Distances, once they are computed."""

    model: BetaPosterior = not_checkpointed()
    counts: tuple[int, int] = not_checkpointed()
    distances: Tensor = field(default_factory=lambda: torch.zeros(0, 2, dtype=torch.float64))


@cache
def _expected_distances(a: float, b: float, theta: float, n: int) -> list[float]:
    """Means of ``_distances`` over k ~ Binomial(n, θ), an exact sum over all k that matter."""
    from scipy import stats

    mass = stats.binom.pmf(np.arange(n + 1), n, theta)
    heads = np.flatnonzero(mass > LEAST_MASS)
    distances = np.array([_distances(a, b, int(k), n) for k in heads])
    mean: list[float] = (mass[heads] @ distances).tolist()
    return mean


def _distances(a: float, b: float, heads: int, n: int) -> tuple[float, float]:
    """Total variation and Hellinger distance of Beta(a + k, b + n − k) and N(θ̂, θ̂(1 − θ̂)/n), θ̂
    = k/n; 1 where the normal law is a point."""
    estimate = heads / n
    information = n / (estimate * (1 - estimate)) if 0 < heads < n else float("inf")
    if information == float("inf"):
        return 1.0, 1.0
    return beta_normal_distances(a + heads, b + n - heads, estimate, information**-0.5)


@register("inference", "bernstein_von_mises")
class BernsteinVonMises(Inference[BetaPosterior, Unlabelled, Rows, LimitState]):
    """The Bernstein–von Mises theorem as a distance: posterior of a coin against its normal limit.

        ‖p(θ | y_{1:n}) − N(θ̂, I(θ̂)⁻¹/n)‖ → 0,   I(θ) = 1/(θ(1 − θ)),   θ̂ = k/n

    Distances are means over all sequences of N tosses with θ = ``theta``, for every N in
    ``numbers``: exact sums over k ~ Binomial(N, θ).  The posterior is Beta(a + k, b + N − k), so
    that total variation and Hellinger distance are computed on a grid.  Both decrease as N^−½, because of the skewness of the
    posterior and the weight of the prior, and faster if θ = ½ and the prior is symmetric.  A sample
    without heads or without tails has no normal limit; its distance is 1.  Scores:
    total_variation/N, hellinger/N, slope/… of their logarithms on log N.  Info: total_variation at
    the largest N.

    Source: Bardenet (2021), section 3.4.1; van der Vaart (1998), Theorem 10.1.
    """

    requires = Requirements(
        kinds={"unlabelled"},
        batch_kind="whole",
        capabilities={BetaPosterior},
    )
    numbers: Annotated[
        list[Annotated[int, Field(ge=2, le=1_000_000)]], Field(min_length=2), Increasing
    ]
    theta: BetweenZeroAndOne

    def init(self, model: BetaPosterior, problem: Unlabelled, rng: Rng) -> LimitState:
        assert isinstance(problem.train, Rows)
        return LimitState(model=model, counts=model.counts(problem.train))

    def step(self, state: LimitState, batch: Rows, rng: Rng) -> tuple[LimitState, Info]:
        a, b = state.model.prior
        rows = [_expected_distances(a, b, self.theta, n) for n in self.numbers]
        distances = torch.tensor(rows, dtype=torch.float64)
        return replace(state, distances=distances), {"total_variation": distances[-1, 0]}

    def posterior(self, state: LimitState) -> NormalLimit:
        return NormalLimit(state.model, state.counts, list(self.numbers), state.distances)
