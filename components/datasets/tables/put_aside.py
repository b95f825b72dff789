"""Tables with test rows held out at random, or without held-out rows for studies of gradients."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import BaseModel, NonNegativeInt, PositiveInt
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.errors import ConfigMismatchError
from components.figures.supervised.calibration import calibration
from components.problems.input_columns import InputColumns
from components.problems.supervised import Supervised


class HeldOutRows(BaseModel):
    """Keys of a table with held-out rows, and its problem."""

    n_test: NonNegativeInt  # held-out rows; 0: all rows are used for training and scoring
    batch_size: PositiveInt | None

    def make_problem(
        self,
        name: str,
        x: Tensor,
        y: Tensor,
        *,
        target: Literal["real", "count", "binary"],
        task: str,
        rng: Rng,
        setting: Setting,
    ) -> Supervised:
        """The problem with x [N, D] and y [N, 1]: inputs and real labels are standardised by the
        training rows; counts are real labels without standardisation.

        Raises ConfigMismatchError if fewer than two rows are left to learn from."""
        if len(x) - self.n_test < 2:
            raise ConfigMismatchError(
                f"dataset.n_test={self.n_test}: leaves {max(len(x) - self.n_test, 0)} of {len(x)} rows for training; lower it"
            )
        order = torch.randperm(len(x), generator=rng.data) if self.n_test else torch.arange(len(x))
        train_rows = order[self.n_test :]
        test_rows = order[: self.n_test] if self.n_test else train_rows
        x_mean = x[train_rows].mean(0)
        x_std = x[train_rows].std(0, correction=0)
        x = (x - x_mean) / x_std
        y_mean = y_std = None
        if target == "real":
            y_mean = y[train_rows].mean(0)
            y_std = y[train_rows].std(0, correction=0)
            y = (y - y_mean) / y_std
            y_mean, y_std = (setting.place(v) for v in (y_mean, y_std))

        return Supervised(
            name,
            "binary" if target == "binary" else "real",
            labelled_rows(x[train_rows], y[train_rows], setting),
            labelled_rows(x[test_rows], y[test_rows], setting),
            self.batch_size,
            n_classes=2 if target == "binary" else 1,
            task_names=[task],
            y_mean=y_mean,
            y_std=y_std,
            figures=[calibration],
            input_units="standardised",
            columns=InputColumns.numbered(x.shape[1], x_mean, x_std),
        )
