"""A problem, which a dataset loads: data, scores and figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from typing_extensions import TypeVar

from components.contracts.checks import NamedScores
from components.contracts.problems import BatchKind, Kind
from components.contracts.sequences import Series
from components.contracts.streams import Rng

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


Q = TypeVar("Q", contravariant=True, default=Any)  # a posterior that it can score


@runtime_checkable
class Problem(Protocol[Q]):
    """The result of loading a dataset.

    It holds data, provides batches, scores a posterior and draws figures of it.
    """

    @property
    def kind(self) -> Kind: ...

    @property
    # name of the loaded data; "sarcos-test-file" and "sarcos-sim" are never called "sarcos"
    def name(self) -> str: ...

    @property
    # size of the leading replicate dimension; 1: no such dimension, the runner loops
    def replicates(self) -> int: ...

    def length(self, batch_kind: BatchKind) -> int | None:
        """Number of steps if the observations or episodes are finite; None if unlimited."""

    def batches(
        self, batch_kind: BatchKind, rng: Rng, start: int, stop: int
    ) -> Iterator[tuple[int, Any]]:
        """Steps start+1 … stop with their batches, a pure function of the seed and the step."""

    def score(self, posterior: Q, rng: Rng) -> NamedScores:
        """Scores by name: numbers, or [R] where replicates are a dimension."""

    def draw(self, posterior: Q, rng: Rng) -> dict[str, Figure]:
        """Figures by name."""

    def describe(self) -> dict[str, str]:
        """Facts for the terminal and the record."""


@runtime_checkable
class TabulatingProblem(Problem[Q], Protocol[Q]):
    """A problem that tabulates a posterior."""

    def tables(self, posterior: Q, rng: Rng) -> dict[str, pd.DataFrame]: ...


@runtime_checkable
class SeriesProblem(Problem[Q], Protocol[Q]):
    """A problem with a series as its data."""

    @property
    def series(self) -> Series: ...
