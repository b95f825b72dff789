"""Base of email data sets: file or simulated corpus, hold-out, and binary-word problem."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.roles import BetweenZeroAndOne, Setting
from components.datasets.labelled_rows import labelled_rows
from components.datasets.stand_in import FileOrSimulationDataset, FilesOrStandIn
from components.figures.supervised.calibration import calibration
from components.problems.supervised import Supervised


def held_out(
    n: int, test_share: float, n_train: int | None, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Training and test rows from a random permutation: ``test_share`` is held out, and the first
    ``n_train`` of the others (all if None) are for training, so training sets of different sizes
    are nested.
    """
    n_test = min(max(1, round(test_share * n)), n - 1)
    order = torch.randperm(n, generator=generator)
    return order[n_test:] if n_train is None else order[n_test : n_test + n_train], order[:n_test]


def make_word_problem(
    name: str,
    x: Tensor,
    y: Tensor,
    rows: tuple[Tensor, Tensor],
    batch_size: int | None,
    setting: Setting,
) -> Supervised:
    """Problem of spam (1) or not (0), y [N], from the presence (1) or absence (0) of words, x [N,
    D], with training and test rows."""
    train, test = (labelled_rows(x[chosen], y[chosen, None], setting) for chosen in rows)
    return Supervised(
        name=name,
        target="binary",
        train=train,
        test=test,
        batch_size=batch_size,
        n_classes=2,
        task_names=["spam"],
        bounds=(0.0, 1.0),
        domain="binary",
        figures=[calibration],
    )


class MailDataset(FileOrSimulationDataset[Supervised]):
    """A set of emails as binary word indicators, from a file of the catalogue or the simulated
    ``corpus``."""

    kind = "supervised"
    label_kind = "binary"
    domain = "binary"
    stand_in = "a simulated corpus of the same size"
    corpus: ClassVar[str]
    text: ClassVar[str]
    packed: ClassVar[str]
    test_share: BetweenZeroAndOne
    n_train: PositiveInt | None
    batch_size: PositiveInt | None

    def file(self) -> str:
        return self.text

    def source(self) -> FilesOrStandIn:
        return replace(super().source(), stand_in=self.corpus, packed=self.packed)
