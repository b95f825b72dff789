"""Batched replicates of a supervised problem, R splits with the same number of training rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

import torch
from torch import Tensor

from components.contracts.attackers import Attacker
from components.contracts.checks import NamedScores
from components.contracts.posteriors import Predicts
from components.contracts.problems import BatchKind, Kind, KnowsTruth
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.metrics.undefined import stack_scores
from components.problems.epochs import minibatches
from components.problems.replicates.variants import Variants
from components.problems.supervised import Supervised

if TYPE_CHECKING:
    from components.figures.style import Figures

V = TypeVar("V")


@dataclass(frozen=True)
class Batches:
    """One batch per replicate, all with the same number of rows."""

    x: Tensor  # [R, B, D]
    y: Tensor  # [R, B, T]
    mask: Tensor  # [R, B, T] bool
    scale: float

    @property
    def n_rows(self) -> int:
        return self.x.shape[1]


@dataclass
class SupervisedReplicates(KnowsTruth):
    """R splits of a data set, each with its own row order, test rows and streams.

    Batches and evaluation draws are the same as for a separately computed split.  A posterior
    consists of R posteriors.  Figures use the first split.

    Raises:
        ConfigMismatchError: the training data of the splits differ in number of rows, inputs or
            labels.
    """

    kind: ClassVar[Kind] = "supervised"
    splits: list[Supervised]
    attacker: Attacker | None = None
    _train: Batches = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shapes = {(*split.train.x.shape, *split.train.y.shape[1:]) for split in self.splits}
        if len(shapes) > 1:
            rows = " and ".join(" × ".join(map(str, shape[:2])) for shape in sorted(shapes))
            raise ConfigMismatchError(
                f"side_by_side=true: the replicates of {self.name} differ in the shape of their "
                f"training rows ({rows}); remove side_by_side"
            )
        x = torch.stack([split.train.x for split in self.splits])
        y = torch.stack([split.train.y for split in self.splits])
        self._train = Batches(x, y, torch.stack([split.train.mask for split in self.splits]), 1.0)

    @property
    def name(self) -> str:
        return self.splits[0].name

    @property
    def replicates(self) -> int:
        return len(self.splits)

    def without_truth(self) -> SupervisedReplicates:
        """The splits, each without its truth."""
        return replace(self, splits=[split.without_truth() for split in self.splits])

    def length(self, batch_kind: BatchKind) -> int | None:
        return None

    def batches(
        self, batch_kind: BatchKind, rng: Rng, start: int, stop: int
    ) -> Iterator[tuple[int, Batches]]:
        """Steps start+1 … stop with the batch of every split."""
        first = self.splits[0]
        train = self._train
        size = None if batch_kind == "whole" else first.batch_size
        each = torch.arange(self.replicates, device=train.x.device)[:, None]
        orders = [
            minibatches(first.n, size, rng.of(r), start, stop) for r in range(self.replicates)
        ]
        for step_rows in zip(*orders, strict=True):
            step = step_rows[0][0]
            rows = [rows for _, rows in step_rows if rows is not None]
            if not rows:
                yield step, train
                continue
            index = torch.stack(rows).to(train.x.device)  # [R, B]
            yield (
                step,
                Batches(
                    train.x[each, index],
                    train.y[each, index],
                    train.mask[each, index],
                    first.n / index.shape[1],
                ),
            )

    def score(self, posterior: Sequence[Predicts | Variants], rng: Rng) -> NamedScores:
        """Scores of every split [R] by its own posterior, or by each of its variants."""
        each = enumerate(zip(self.splits, posterior, strict=True))
        scores = [
            _of_each(split_posterior, split.score, rng.of(r))
            for r, (split, split_posterior) in each
        ]
        return stack_scores(scores)

    def draw(self, posterior: Sequence[Predicts | Variants], rng: Rng) -> Figures:
        figures = _of_each(posterior[0], self.splits[0].draw, rng.of(0))
        return {name.replace("/", "_"): figure for name, figure in figures.items()}

    def describe(self) -> dict[str, str]:
        return self.splits[0].describe() | {"side by side": f"{self.replicates} replicates"}


def _of_each(
    posterior: Predicts | Variants, f: Callable[[Predicts, Rng], dict[str, V]], rng: Rng
) -> dict[str, V]:
    return (
        posterior.each(lambda one: f(one, rng))
        if isinstance(posterior, Variants)
        else f(posterior, rng)
    )
