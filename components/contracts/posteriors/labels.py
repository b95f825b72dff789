"""What predicts labels: a predictive, draws, a fit, a module; and what a method says of itself in figures and in files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from torch import Tensor

from components.contracts.predictive import Predictive, Reverse

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@runtime_checkable
class Predicts(Protocol):
    """A posterior predictive: the only ``predict`` there is."""

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive: ...  # x [B, D]


@runtime_checkable
class Redraws(Predicts, Protocol):
    """A posterior predictive that rests on draws of which there can be fewer: what an attack follows at each step."""

    def some(self, n: int, generator: torch.Generator | None) -> Predicts: ...  # None: always the same n


@runtime_checkable
class PredictsInReverse(Predicts, Protocol):
    """A posterior predictive whose derivative in the inputs may be written out: no graph is made; None: as it is, not."""

    def reverse(
        self, x: Tensor, generator: torch.Generator
    ) -> tuple[Predictive, Reverse] | None: ...  # ``predict``, and ∂/∂f [S, B, T, C] of its logits -> ∂/∂x [B, D]


@runtime_checkable
class ChangesFormat(Predicts, Protocol):
    """A posterior predictive of which there may be a copy in another floating-point format, for inputs x in it."""

    def in_format(self, dtype: torch.dtype) -> Predicts | None: ...  # None: what it is made of has no such copy


@runtime_checkable
class HoldsDraws(Protocol):
    """Draws θ of C chains, and the P' parameters with names that they stand for.

    Where R replicates are computed at once, C is R times the chains of each; ``of_replicate`` has those of one."""

    @property
    def replicates(self) -> int: ...  # R

    def of_replicate(self, r: int) -> HoldsDraws: ...

    @property
    def draws(self) -> Tensor: ...  # [C, N, P]

    @property
    def start(self) -> Tensor: ...  # [C, P] where the chains began

    @property
    def names(self) -> list[str]: ...  # of the P' parameters; empty where they have none

    @property
    def stats(self) -> dict[str, Tensor]: ...  # [C, N] each

    @property
    def log_weights(self) -> Tensor | None: ...  # [C, N], importance sampling only; unnormalised

    @property
    def n_chains(self) -> int: ...

    @property
    def n_draws(self) -> int: ...

    @property
    def flat(self) -> Tensor: ...  # [C·N, P]

    @property
    def values(self) -> Tensor: ...  # of the parameters [C, N, P']

    @property
    def weights(self) -> Tensor: ...  # of the draws [C·N], sum 1

    @property
    def mean(self) -> Tensor: ...  # estimate of E[parameters] [P']

    @property
    def second_moment(self) -> Tensor: ...  # of their squares [P']

    def expectation(self, f: Tensor) -> Tensor: ...  # estimate of E[f] from f [C·N, …] at all draws

    def constrain(self, theta: Tensor) -> Tensor: ...  # [K, P] -> [K, P']

    def predictive(self, theta: Tensor, x: Tensor) -> Predictive: ...  # of K parameters at x [B, D]


@runtime_checkable
class HoldsFit(Predicts, Protocol):
    """A posterior that is an estimator and what it learnt, of which attacks ask ``contracts.capabilities``."""

    @property
    def estimator(self) -> object: ...

    @property
    def fitted(self) -> dict[str, Tensor]: ...


@runtime_checkable
class HoldsModule(Protocol):
    """A posterior made of a trained module, of which figures ask ``contracts.capabilities``."""

    @property
    def module(self) -> object: ...


@runtime_checkable
class DrawsInBulk(Protocol):
    """A posterior known in closed form, and draws of its parameters that stand for it."""

    @property
    def in_bulk(self) -> HoldsDraws: ...


@runtime_checkable
class Defends(Predicts, Protocol):
    """A defended classifier that can show what lies under its defence."""

    @property
    def undefended(self) -> Predicts: ...


@runtime_checkable
class Analyses(Protocol):
    """A posterior that has more to say than what it predicts: scores and figures of its own."""

    def scores(self) -> Mapping[str, Tensor | float]: ...  # numbers, or [R] where replicates are a dimension

    def figures(self) -> dict[str, Figure]: ...


@runtime_checkable
class WritesFiles(Protocol):
    """A posterior that leaves files of its own in a run's folder."""

    def artefacts(self, folder: Path) -> list[Path]: ...  # the paths written


@runtime_checkable
class KnowsDensity(Protocol):
    """A posterior of θ whose density may be known."""

    def log_density(self, theta: Tensor) -> Tensor | None: ...  # log q(θ), [n, P] -> [n]; None: it is not
