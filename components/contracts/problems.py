"""Problems: the data that a dataset loads, their views for inference methods, and the interface
common to all kinds."""

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
# kinds of rows of an unlabelled problem; incomplete: real values with missing ones as NaN
Values = Literal["real", "incomplete", "binary", "count"]
# values of inputs, also under an evasion attack; tokens: word numbers in order, padded with 0
Domain = Literal["continuous", "binary", "tokens"]
# views of the data for a step of inference
BatchKind = Literal["minibatch", "whole", "observation", "series", "episode"]

# views offered by each kind of problem, the default first
BATCH_KINDS_BY_PROBLEM: dict[Kind, tuple[BatchKind, ...]] = {
    "supervised": ("minibatch", "whole"),
    "unlabelled": ("minibatch", "whole"),
    "density": ("minibatch", "whole"),  # both are empty because a density has no data
    # all except the first contain the whole series
    "sequence": ("observation", "series", "whole", "minibatch"),
    "game": ("episode",),
}


class KnowsTruth:
    """Base of problems that hold the ground truth for scoring."""

    def without_truth(self) -> Self:
        """The problem without its ground truth, as passed to methods."""
        raise NotImplementedError


class RowBatch(Protocol):
    """Batch of a step for data with rows: B rows, each with weight ``scale`` = N/B rows."""

    @property
    def scale(self) -> float: ...

    @property
    def n_rows(self) -> int: ...  # B

    # selected rows, in the given order
    def part(self, rows: Tensor | slice, scale: float) -> Self: ...


@dataclass(frozen=True)
class Batch:
    """Rows of a supervised problem.  A batch sum times ``scale`` = N/B is an unbiased estimate of
    the sum over the data."""

    x: Tensor  # [B, D]
    # [B, T]; real labels: floating point, otherwise class numbers (long); arbitrary where missing
    y: Tensor
    mask: Tensor  # [B, T] bool: True where a label is observed
    scale: float
    # [B] long: their indices in the training set; None if unknown
    numbers: Tensor | None = None

    @property
    def n_rows(self) -> int:
        return len(self.x)

    def part(self, rows: Tensor | slice, scale: float) -> Batch:
        """Select rows, with a new ``scale``."""
        numbers = None if self.numbers is None else self.numbers[rows]
        return replace(
            self, x=self.x[rows], y=self.y[rows], mask=self.mask[rows], scale=scale, numbers=numbers
        )

    def side_by_side(self) -> Tensor:
        """x_b and y_b concatenated [B, I + T]; missing labels are 0."""
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
        """Select rows, with a new ``scale``."""
        return Rows(self.x[rows], scale)


def of_rows(lengths: Tensor, rows: Tensor | slice) -> tuple[Tensor, Tensor]:
    """Select rows of different lengths, in the given order.

    Returns:
        The lengths of the rows, and the positions of their contents.
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

    words: Tensor  # [M] long: word numbers, row by row, increasing within a row
    counts: Tensor  # [M] long, all above 0
    lengths: Tensor  # [B] long: number of distinct words in each row
    scale: float

    @property
    def n_rows(self) -> int:
        return len(self.lengths)

    @property
    def rows(self) -> Tensor:
        """Row number of each pair [M]."""
        return torch.arange(self.n_rows, device=self.lengths.device).repeat_interleave(self.lengths)

    @property
    def pairs(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.words, self.counts, self.lengths

    @property
    def totals(self) -> Tensor:
        """Number of words in each row, with repetitions [B]."""
        return torch.zeros_like(self.lengths).index_add_(0, self.rows, self.counts)

    def part(self, rows: Tensor | slice, scale: float) -> Counts:
        """Select rows, with a new ``scale``."""
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

    N rows x [N, D], each with a label for each of T tasks.
    """

    target: Target
    train: Batch
    test: Batch
    task_names: list[str]  # empty if unnamed
    y_mean: Tensor | None  # [T]; with y_std it converts back to the units of the labels
    y_std: Tensor | None  # [T]
    label_unit: str  # units of the labels; empty if not known
    bounds: tuple[float, float] | None  # smallest and largest value of an input
    image_shape: tuple[int, ...] | None  # of a row of x if it is an image

    @property
    def n_tasks(self) -> int: ...

    @property
    def n_inputs(self) -> int: ...

    def predictive_at(self, posterior: Predicts, x: Tensor, rng: Rng) -> Predictive: ...  # x [B, D]


class UnlabelledProblem(Protocol):
    """Attributes of an unlabelled problem that figures need.

    Training rows, held-out rows, and the classes of the held-out rows if known.
    """

    train: Rows
    test: Rows
    test_classes: Tensor | None  # [B]
    image_shape: tuple[int, ...] | None  # of a row if it is an image
