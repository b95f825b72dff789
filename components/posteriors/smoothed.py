"""What a sampler over whole series hands back: draws of the states and of the parameters of R replicates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torch import Tensor

from components.contracts.predictive import Predictive
from components.maths.order_statistics import quantiles
from components.posteriors.draws import Draws


@dataclass(frozen=True)
class SampledSeries:
    """Summaries of N draws of the states x_1 … x_T by C chains for each of R replicates, and the draws of P named parameters.

    N may still be 0 while the chains burn in; the summaries are NaN then.  The replicates' posteriors are independent, so
    the C chains are also chains of all R·P parameters together: that is what ``draws`` [C, N, R·P] are, those of the first
    replicate first."""

    mean: Tensor  # [R, T, dx]
    variance: Tensor  # [R, T, dx]
    lower: Tensor  # 5 % quantile [R, T, dx]
    upper: Tensor  # 95 % quantile [R, T, dx]
    parameters: Tensor  # [R, C, N, P]
    parameter_names: list[str]
    begun: Tensor  # where the chains began [R, C, P]

    @classmethod
    def summarised(cls, states: Tensor, parameters: Tensor, names: list[str], begun: Tensor) -> SampledSeries:
        """The posterior of draws of states [R, C, N, T, dx] and of parameters [R, C, N, P]."""
        r, _, n, times, dx = states.shape
        if n == 0:
            nothing = states.new_full((r, times, dx), float("nan"))
            return cls(nothing, nothing, nothing, nothing, parameters, names, begun)
        pooled = states.reshape(r, -1, times * dx)  # [R, C·N, T·dx]
        lower, upper = quantiles(pooled, (0.05, 0.95))
        mean, variance, low, high = (
            value.unflatten(1, (times, dx)) for value in (pooled.mean(1), pooled.var(1, correction=0), lower, upper)
        )
        return cls(mean, variance, low, high, parameters, names, begun)

    # -- the parameters, as the draws of any sampler -------------------------------------------------------------------
    @cached_property
    def draws(self) -> Tensor:
        return self.parameters.permute(1, 2, 0, 3).flatten(2)  # [C, N, R·P]

    @property
    def start(self) -> Tensor:
        return self.begun.permute(1, 0, 2).flatten(1)  # [C, R·P]

    @property
    def names(self) -> list[str]:
        replicates = len(self.parameters)
        if replicates == 1:
            return self.parameter_names
        return [f"{name}[{r + 1}]" for r in range(replicates) for name in self.parameter_names]

    @property
    def stats(self) -> dict[str, Tensor]:
        return {}

    @property
    def log_weights(self) -> None:
        return None

    @property
    def n_chains(self) -> int:
        return self.parameters.shape[1]

    @property
    def n_draws(self) -> int:
        return self.parameters.shape[2]

    @property
    def flat(self) -> Tensor:
        return self.draws.flatten(0, 1)  # [C·N, R·P]

    @property
    def values(self) -> Tensor:
        return self.draws  # drawn as they are, not on an unbounded scale

    def constrain(self, theta: Tensor) -> Tensor:
        return theta

    def predictive(self, theta: Tensor, x: Tensor) -> Predictive:
        """Raises TypeError: a series predicts its own future, not labels of inputs."""
        raise TypeError("a series predicts no labels of inputs")

    def artefacts(self, folder: Path) -> list[Path]:
        """Writes ``posterior.nc``, ArviZ's InferenceData, into a run's folder: the paths written."""
        return Draws(self.draws, self.start, self.names).artefacts(folder)
