"""Problems: what a dataset loads, what an inference method is shown of it, and what the loop asks
of every kind."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self

import torch
from torch import Tensor

from components.contracts.posteriors import Predicts
from components.contracts.predictive import Predictive
from components.contracts.streams import Rng

Kind = Literal["supervised", "unlabelled", "density", "sequence", "game"]
Target = Literal["real", "binary", "classes"]  # kinds of supervised labels
# kinds of rows of an unlabelled problem; incomplete: real ones with gaps, NaN
Values = Literal["real", "incomplete", "binary", "count"]
# Values that inputs can take, also under an evasion attack; tokens: numbers of words in their
# order, 0 where a row has ended.
Domain = Literal["continuous", "binary", "tokens"]
# views of the data that a step of inference gets
BatchKind = Literal["minibatch", "whole", "observation", "series", "episode"]

# Views that the problems of each kind offer, the natural one first.
BATCH_KINDS_BY_PROBLEM: dict[Kind, tuple[BatchKind, ...]] = {
    "supervised": ("minibatch", "whole"),
    "unlabelled": ("minibatch", "whole"),
    "density": ("minibatch", "whole"),  # both are empty: a density has no data
    # all but the first are the whole series
    "sequence": ("observation", "series", "whole", "minibatch"),
    "game": ("episode",),
}


class KnowsTruth:
    """Base of problems that hold what a result is scored by."""

    def without_truth(self) -> Self:
        """The problem as a method is shown it."""
        raise NotImplementedError


class RowBatch(Protocol):
    """Batch of a step for data with rows: B rows, each with weight ``scale`` = N/B rows."""

    @property
    def scale(self) -> float: ...

    @property
    def n_rows(self) -> int: ...  # B

    # some of the rows, in the requested order
    def part(self, rows: Tensor | slice, scale: float) -> Self: ...


@dataclass(frozen=True)
class Batch:
    """Rows of a supervised problem.  ``scale`` = N/B makes a sum over the batch an unbiased sum
    over the data."""

    x: Tensor  # [B, D]
    # [B, T]; real: floating, otherwise class numbers (long); any value where the label is missing
    y: Tensor
    mask: Tensor  # [B, T] bool: which labels are observed
    scale: float
    # [B] long: their indices in the training set; None: unknown
    numbers: Tensor | None = None

    @property
    def n_rows(self) -> int:
        return len(self.x)

    def part(self, rows: Tensor | slice, scale: float) -> Batch:
        """Some of the rows, each with weight ``scale`` rows."""
        numbers = None if self.numbers is None else self.numbers[rows]
        return replace(
            self, x=self.x[rows], y=self.y[rows], mask=self.mask[rows], scale=scale, numbers=numbers
        )

    def side_by_side(self) -> Tensor:
        """x_b and y_b in one row [B, I + T]; 0 for a label that is missing."""
        return torch.cat([self.x, torch.where(self.mask, self.y, 0)], 1)


@dataclass(frozen=True)
class Rows:
    """Rows without labels, all of one shape."""

    x: Tensor  # [B, …]
    scale: float

    @property
    def n_rows(self) -> int:
        return len(self.x)

    def part(self, rows: Tensor | slice, scale: float) -> Rows:
        """Some of the rows, each with weight ``scale`` rows."""
        return Rows(self.x[rows], scale)


def of_rows(lengths: Tensor, rows: Tensor | slice) -> tuple[Tensor, Tensor]:
    """Select some of several rows of different lengths, in the given order.

    Returns:
        The lengths of the rows, and the places of their contents.
    """
    starts = (lengths.cumsum(0) - lengths)[rows]
    row_lengths = lengths[rows]
    within = torch.arange(int(row_lengths.sum()), device=row_lengths.device) - (
        row_lengths.cumsum(0) - row_lengths
    ).repeat_interleave(row_lengths)
    return row_lengths, starts.repeat_interleave(row_lengths) + within


@dataclass(frozen=True)
class Counts:
    """Rows of counts in sparse form: M pairs of a word and its positive count, in B rows.

    No word occurs twice in a row.  A row may be empty.
    """

    words: Tensor  # [M] long: numbers of the words, row after row, rising in each
    counts: Tensor  # [M] long, all above 0
    lengths: Tensor  # [B] long: how many different words each row has
    scale: float

    @property
    def n_rows(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> Tensor:
        """The row that each pair is in [M]."""
        return torch.arange(self.n_rows, device=self.lengths.device).repeat_interleave(self.lengths)

    @property
    def pairs(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.words, self.counts, self.lengths

    @property
    def totals(self) -> Tensor:
        """How many words each row has, repeated ones as often as they are there [B]."""
        return torch.zeros_like(self.lengths).index_add_(0, self.rows, self.counts)

    def part(self, rows: Tensor | slice, scale: float) -> Counts:
        """Some of the rows, each with weight ``scale`` rows."""
        lengths, places = of_rows(self.lengths, rows)
        return Counts(self.words[places], self.counts[places], lengths, scale)

    def to(self, device: torch.device) -> Counts:
        return replace(
            self,
            words=self.words.to(device),
            counts=self.counts.to(device),
            lengths=self.lengths.to(device),
        )


class LabelledProblem(Protocol):
    """Attributes of a supervised problem that figures need.

    N rows x [N, D], and a label of each for every one of T tasks.
    """

    target: Target
    train: Batch
    test: Batch
    task_names: list[str]  # empty: they have none
    y_mean: Tensor | None  # [T]; with y_std it leads back to the units of the labels
    y_std: Tensor | None  # [T]
    label_unit: str  # of the labels in their units; empty: not known
    bounds: tuple[float, float] | None  # smallest and largest value of an input
    image_shape: tuple[int, ...] | None  # of a row of x, where it is an image

    @property
    def n_tasks(self) -> int: ...

    @property
    def n_inputs(self) -> int: ...

    def predictive_at(self, posterior: Predicts, x: Tensor, rng: Rng) -> Predictive: ...  # x [B, D]


class UnlabelledProblem(Protocol):
    """Attributes of an unlabelled problem that figures need.

    Rows to learn from and held-out ones, and classes of these, if known.
    """

    train: Rows
    test: Rows
    test_classes: Tensor | None  # [B]
    image_shape: tuple[int, ...] | None  # of a row, where it is an image
