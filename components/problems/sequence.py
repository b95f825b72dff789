"""Sequence problems: hidden states x_1 … x_T and observations y_1 … y_T, R replicates at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from torch import Tensor

from components.contracts.problems import Kind, Sees
from components.contracts.roles import Attacker
from components.contracts.streams import Rng
from components.metrics import filtering
from components.posteriors.filtered import Filtered


class Observation(NamedTuple):
    """The batch of a sequence: what is seen at time t."""

    t: int  # 1 … T
    y: Tensor  # [R, dy]


@dataclass(frozen=True)
class LinearGaussianSystem:
    """x_0 ~ N(m_0, P_0), x_t = A x_{t−1} + N(0, Q), y_t = H x_t + N(0, Σ).

    Source: Boustati (2021), eqs. (6.16), (6.17)."""

    A: Tensor  # [dx, dx]
    Q: Tensor  # [dx, dx]
    H: Tensor  # [dy, dx]
    Sigma: Tensor  # [dy, dy]
    m0: Tensor  # [dx]
    P0: Tensor  # [dx, dx]


@dataclass
class Sequence:
    """Simulated states, the observations a filter may see, and the system that a model may assume.

    Replicates differ in their observations; the states may be the same for all of them."""

    kind: Kind = field(default="sequence", init=False)
    name: str
    states: Tensor  # [R or 1, T, dx]
    observations: Tensor  # [R, T, dy], corrupted where there is an attacker
    system: LinearGaussianSystem  # that made the clean observations
    state_names: list[str]
    clean: Tensor | None = None  # the observations before an attacker corrupted them [R, T, dy]
    figures: list[Callable[..., dict]] = field(default_factory=list)  # each (problem, filtered) -> {name: Figure}
    attacker: Attacker | None = None
    replicates: int = field(init=False)

    def __post_init__(self) -> None:
        self.replicates = self.observations.shape[0]

    def attacked(self, attacker: Attacker, rng: Rng) -> Sequence:
        """The same states, seen through observations that the attacker corrupted once, before any inference."""
        corrupted = attacker.corrupt(self.observations, rng)  # type: ignore[attr-defined]
        return replace(self, observations=corrupted, clean=self.observations, attacker=attacker)

    def length(self, sees: Sees) -> int | None:
        """T, where observations are seen one by one; a series can be seen for ever."""
        return self.observations.shape[1] if sees == "observation" else None

    def batches(self, sees: Sees, rng: Rng, start: int, stop: int) -> Iterator[tuple[int, Observation]]:
        """Times start+1 … stop; a sequence ends at T whatever ``stop`` says."""
        for t in range(start + 1, min(stop, self.observations.shape[1]) + 1):
            yield t, Observation(t, self.observations[:, t - 1])

    def score(self, posterior: Filtered, rng: Rng) -> dict[str, Tensor | float]:
        """NMSE and 90 % coverage over the times filtered so far, means over state dimensions and each of them, and the
        median absolute error of one-step predictions of the observations (mean over their dimensions); [R] each."""
        if posterior.t == 0:
            return {}
        so_far, states = posterior.so_far(), self.states[:, : posterior.t]
        nmse = filtering.nmse(states, so_far.mean)  # [R, dx]
        covered = filtering.coverage(states, so_far.lower, so_far.upper)  # [R, dx]
        medae = filtering.median_absolute_error(self.observations[:, : posterior.t], so_far.predicted)  # [R, dy]
        out: dict[str, Tensor | float] = {"nmse": nmse.mean(1), "coverage90": covered.mean(1), "medae": medae.mean(1)}
        for metric, values in (("nmse", nmse), ("coverage90", covered)):
            out |= {f"{metric}/{name}": values[:, j] for j, name in enumerate(self.state_names)}
        return out if self.replicates > 1 else {name: float(v) for name, v in out.items()}

    def draw(self, posterior: Filtered, rng: Rng) -> dict:
        drawn: dict = {}
        if posterior.t:
            for figure in self.figures:
                drawn.update(figure(self, posterior.so_far()))
        return drawn

    def describe(self) -> dict[str, str]:
        """Facts for the terminal and the record."""
        facts = {
            "data": self.name,
            "time points": f"{self.observations.shape[1]:,}",
            "states": f"{self.states.shape[2]}",
            "observed": f"{self.observations.shape[2]}",
            "replicates": f"{self.replicates}",
        }
        if self.clean is not None:
            hit = (self.clean != self.observations).any(-1).double().mean()
            facts["corrupted"] = f"{100 * float(hit):.1f} % of observations"
        return facts
