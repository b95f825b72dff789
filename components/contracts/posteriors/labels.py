"""Posteriors that predict labels, and the optional draws, fit, module, figures and files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import torch
from torch import Tensor

from components.contracts.predictive import Predictive, ReversedPredictive

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@runtime_checkable
class Predicts(Protocol):
    """A posterior predictive; ``predict`` is defined only here."""

    def predict(self, x: Tensor, generator: torch.Generator) -> Predictive: ...  # x [B, D]


@runtime_checkable
class Redraws(Predicts, Protocol):
    """A posterior predictive based on draws, with a variable number of draws.

    Attacks use it for the gradient of each step.
    """

    # None means always the same n
    def some(self, n: int, generator: torch.Generator | None) -> Predicts: ...


@runtime_checkable
class PredictsInReverse(Predicts, Protocol):
    """A posterior predictive with an optional explicit input derivative, without an autograd graph.

    None if not available.
    """

    def reverse(
        self, x: Tensor, generator: torch.Generator
    ) -> ReversedPredictive: ...  # ``predict``, and ∂/∂f [S, B, T, C] of its logits -> ∂/∂x [B, D]


@runtime_checkable
class CastablePosterior(Predicts, Protocol):
    """A posterior predictive that can be copied to another floating-point format.

    The copy takes inputs x in that format.
    """

    # None if its inputs cannot be converted
    def in_format(self, dtype: torch.dtype) -> Predicts | None: ...


@runtime_checkable
class HoldsDraws(Protocol):
    """Draws θ of C chains, and the P' named parameters that they represent.

    If R replicates are computed in parallel, C is R times the chains of each;
    ``select_replicate`` selects the chains of one.
    """

    @property
    def replicates(self) -> int: ...  # R

    def select_replicate(self, r: int) -> HoldsDraws: ...

    @property
    def draws(self) -> Tensor: ...  # [C, N, P]

    @property
    def start(self) -> Tensor: ...  # [C, P] initial states of the chains

    @property
    def names(self) -> list[str]: ...  # of the P' parameters; empty if unnamed

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
    """A posterior that consists of an estimator and its fit.

    Attacks use ``contracts.capabilities`` of the estimator.
    """

    @property
    def estimator(self) -> object: ...

    @property
    def fitted(self) -> dict[str, Tensor]: ...


@runtime_checkable
class HoldsModule(Protocol):
    """A posterior made of a trained module.

    Figures use ``contracts.capabilities`` of the module.
    """

    @property
    def module(self) -> object: ...


def module_of(posterior: object) -> object:
    """The trained module of a posterior; None if it has none."""
    return posterior.module if isinstance(posterior, HoldsModule) else None


@runtime_checkable
class Defends(Predicts, Protocol):
    """A defended classifier that exposes the classifier without its defence."""

    @property
    def undefended(self) -> Predicts: ...


@runtime_checkable
class Analyses(Protocol):
    """A posterior with scores and figures in addition to its predictions."""

    # numbers, or [R] where replicates are a dimension
    def scores(self) -> Mapping[str, Tensor | float]: ...

    def figures(self) -> dict[str, Figure]:
        """Figures by name; none by default."""
        return {}


@runtime_checkable
class WritesFiles(Protocol):
    """A posterior that writes its own files to a run's folder."""

    def artefacts(self, folder: Path) -> list[Path]: ...  # paths of the written files


@runtime_checkable
class DensityPosterior(Protocol):
    """A posterior of θ with an optional density."""

    # log q(θ), [n, P] -> [n]; None if not known
    def log_density(self, theta: Tensor) -> Tensor | None: ...
