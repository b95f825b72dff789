"""The protocol of the inverse-dynamics experiments: N rows with a few labels each, standardised."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.errors import ConfigMismatchError
from components.figures.supervised.calibration import calibration
from components.figures.supervised.hinton import hinton
from components.figures.supervised.predictions import predictions
from components.problems.input_columns import InputColumns
from components.problems.supervised import Supervised

Array = NDArray[np.float64]
JOINTS = 7
TRAIN_ROWS = 44_484
TEST_ROWS = 4_449


def observed_labels(rows: int, labels_per_row: int, generator: torch.Generator) -> Tensor:
    """Indicator of observed labels, [rows, 7] bool: in each row ``labels_per_row`` of the 7,
    uniformly at random."""
    order = torch.rand(rows, JOINTS, generator=generator, dtype=torch.float64).argsort(1)
    return torch.zeros(rows, JOINTS, dtype=torch.bool).scatter_(1, order[:, :labels_per_row], True)


def moments(y: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each task's observed labels, [T] each; y, mask [N, T].

    For a task with fewer than two different labels, the deviation is pooled over all labels around
    the means of their tasks (1 if it is 0); the mean of a task without labels is 0.
    """
    count = mask.sum(0)
    mean = (y * mask).sum(0) / count.clamp_min(1)
    square = ((y - mean) ** 2 * mask).sum(0)
    std = (square / count.clamp_min(1)).sqrt()
    pooled = (square.sum() / count.sum().clamp_min(1)).sqrt()
    pooled = torch.where(pooled > 0, pooled, 1.0)
    return mean, torch.where(std > 0, std, pooled)


def sample_rows(data: tuple[Array, Array], n: int | None, rng: Rng) -> tuple[Array, Array]:
    """n rows drawn without replacement; None for all, in order.  ``rng`` always advances equally,
    so that later draws do not depend on n.
    """
    rows = torch.randperm(len(data[0]), generator=rng.data)[:n].numpy()
    return data if n is None else (data[0][rows], data[1][rows])


class PartlyLabelled(Dataset[Supervised]):
    """Torques of seven joints, partly observed in the training rows."""

    kind = "supervised"
    traits = {"several_tasks"}
    label_kind = "real"
    n_train: Annotated[int, Field(ge=1, le=TRAIN_ROWS)]
    n_test: Annotated[int, Field(ge=1, le=TEST_ROWS)] | None
    labels_per_row: Annotated[int, Field(ge=1, le=JOINTS)]
    batch_size: Annotated[int, Field(ge=1)] | None

    def make_problem(
        self,
        name: str,
        train: tuple[Array, Array],
        test: tuple[Array, Array],
        rng: Rng,
        setting: Setting,
    ) -> Supervised:
        """Draw N rows without replacement, hide some labels of each, and standardise.

        Inputs and labels are standardised by the observed data: x ← (x − x̄)/s_x and
        yᵗ ← (yᵗ − ȳᵗ)/s_yᵗ, with the mean and deviation of the N training inputs and of the
        observed training labels of task t; the test rows carry all 7 labels.  For the same ``rng``
        the rows and labels of a smaller N are a subset of those of a larger N.  train and test: x
        [rows, 21], y [rows, 7].

        Raises:
            ValueError: N exceeds the number of rows.

        Source: Boustati (2021), appendix A.1.2.
        """
        pool = len(train[0])
        if self.n_train > pool:
            raise ConfigMismatchError(
                f"dataset.n_train={self.n_train}: {name} has {pool} training rows; set it to at most {pool}"
            )
        rows = torch.randperm(pool, generator=rng.data)[: self.n_train]
        mask = observed_labels(pool, self.labels_per_row, rng.data)[: self.n_train]
        x = torch.tensor(train[0][rows.numpy()])
        y = torch.tensor(train[1][rows.numpy()])
        x_mean = x.mean(0)
        x_std = x.std(0, correction=0)
        x_std = torch.where(x_std > 0, x_std, 1.0)
        y_mean, y_std = moments(y, mask)
        y = torch.where(mask, (y - y_mean) / y_std, 0.0)
        x_test = (torch.tensor(test[0]) - x_mean) / x_std
        y_test = (torch.tensor(test[1]) - y_mean) / y_std
        return Supervised(
            name=name,
            target="real",
            train=labelled_rows((x - x_mean) / x_std, y, setting, mask),
            test=labelled_rows(x_test, y_test, setting),
            batch_size=self.batch_size,
            task_names=[f"joint {t + 1}" for t in range(JOINTS)],
            y_mean=setting.place(y_mean),
            y_std=setting.place(y_std),
            label_unit="N m",
            figures=[hinton, predictions, calibration],
            columns=InputColumns.numbered(x.shape[1], x_mean, x_std),
        )
