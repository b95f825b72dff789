"""Problems of rows: batches, held-out rows, and figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import torch
from torch import Tensor

from components.contracts.posteriors import Analyses, HoldsDraws
from components.contracts.problems import BatchKind, KnowsTruth, RowBatch
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.figures.attempts import ANALYSIS, attempt, draw_each

if TYPE_CHECKING:
    from components.figures.style import Figures

B = TypeVar("B", bound=RowBatch)

HELD_OUT = 1  # random stream that selects the held-out training rows


def minibatches(
    n: int, size: int | None, rng: Rng, start: int, stop: int
) -> Iterator[tuple[int, Tensor | None]]:
    """Steps start+1 … stop with numbers of ``size`` out of n rows, or None for all rows in order.

    Each epoch is a fresh permutation, a pure function of (seed, epoch), so that a resumed run
    continues with the same batches.  The last rows of an epoch that do not fill a batch are
    dropped."""
    if size is None or size >= n:
        for step in range(start + 1, stop + 1):
            yield step, None
        return
    per_epoch = n // size
    order = torch.empty(0)
    epoch = -1
    for step in range(start + 1, stop + 1):
        now, position = divmod(step - 1, per_epoch)
        if now != epoch:
            generator = rng.at("batches", now)
            order = torch.randperm(n, generator=generator, device=generator.device)
            epoch = now
        yield step, order[position * size : (position + 1) * size]


def describe_batches(n: int, size: int | None) -> str:
    """Batches of n rows, in words."""
    return "whole" if size is None else f"{size} ({math.ceil(n / size)} an epoch)"


def put_aside(n: int, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Training rows and a random held-out ``share`` of n rows (at least one), both in increasing
    order.

    Raises:
        ConfigMismatchError: no training row would be left."""
    n_held_out = max(1, round(share * n))
    if n_held_out == n:
        raise ConfigMismatchError(
            f"validation={share}: leaves none of {n} rows for training; lower it"
        )
    order = torch.randperm(n, generator=generator)
    return order[n_held_out:].sort()[0], order[:n_held_out].sort()[0]


class RowProblem(KnowsTruth, Generic[B]):
    """N training rows, in minibatches, and held-out rows for scores."""

    name: str
    train: B
    batch_size: int | None  # None means all rows in order at every step
    figures: list[Callable[..., Figures]]  # each (problem, posterior, rng) -> {name: Figure}

    @property
    def n(self) -> int:
        return self.train.n_rows

    @property
    def device(self) -> torch.device:
        """Device of the rows."""
        raise NotImplementedError

    def length(self, batch_kind: BatchKind) -> int | None:
        return None

    def show(self, batch: B, rows: Tensor | None, step: int, rng: Rng) -> B:
        """The batch of a step for a method; ``rows`` are its row numbers, None for all."""
        return batch

    def batches(
        self, batch_kind: BatchKind, rng: Rng, start: int, stop: int
    ) -> Iterator[tuple[int, B]]:
        """Steps start+1 … stop: the whole training set, or minibatches, a fresh permutation of the
        rows each epoch."""
        size = None if batch_kind == "whole" else self.batch_size
        for step, rows in minibatches(self.n, size, rng, start, stop):
            batch = self.train
            if rows is not None:
                rows = rows.to(self.device)
                batch = batch.part(rows, self.n / len(rows))
            yield step, self.show(batch, rows, step, rng)

    def held_out_fields(
        self, rows: tuple[Tensor, Tensor], held_out: B, generator: torch.Generator
    ) -> dict[str, Any]:
        """Further fields of ``held_out``, for these training and held-out rows."""
        return {}

    def held_out(self, share: float, rng: Rng) -> Self:
        """Problem for the choice of settings: a random ``share`` of the training rows replaces the
        test rows.

        Its name states this; standardisation is unchanged, and the test rows are never used.

        Raises:
            ConfigMismatchError: no training row would be left."""
        generator = rng.at("data", HELD_OUT)
        rows = put_aside(self.n, share, generator)
        train, test = (self.train.part(part.to(self.device), 1.0) for part in rows)
        fields = {"name": f"{self.name}-validation", "train": train, "test": test}
        return replace(self, **fields | self.held_out_fields(rows, test, generator))  # type: ignore[type-var]

    def draw(self, posterior: Any, rng: Rng) -> Figures:
        """Figures of the problem, of parameter draws, and of the posterior itself."""
        from components.figures.samples.posterior import POSTERIOR_FIGURES

        figures: Figures = draw_each(self.figures, self, posterior, rng)
        if isinstance(posterior, HoldsDraws):
            figures |= draw_each(POSTERIOR_FIGURES, None, posterior)
        if isinstance(posterior, Analyses):
            figures |= attempt(ANALYSIS, posterior.figures)
        return figures
