"""Tables of real labels, standardised for learning and scored in their own units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from components.contracts.checks import NamedScores
from components.contracts.posteriors import Predicts
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.errors import ConfigMismatchError
from components.figures.supervised.calibration import calibration
from components.figures.supervised.predictions import predictions
from components.problems.input_columns import InputColumns
from components.problems.supervised import Supervised, SupervisedFigure

Rows = NDArray[np.int_] | slice


class RawUnits(Supervised):
    """Problem with scores in the units of the target, y = ȳ + s ỹ, as in the literature."""

    def score(self, posterior: Predicts, rng: Rng) -> NamedScores:
        """Scores of ``Supervised`` in the units of the target.

        RMSE and CRPS are multiplied by s, log s is added to NLPP, and the mean test
        log-likelihood is −NLPP.
        """
        assert self.y_std is not None
        scores = super().score(posterior, rng)
        scale = float(self.y_std)
        nlpp = scores["nlpp"] + math.log(scale)
        inside = {name: scores[name] * scale for name in ("rmse", "crps")}
        return scores | inside | {"nlpp": nlpp, "log_likelihood": -nlpp}

    @classmethod
    def of(
        cls,
        name: str,
        data: tuple[Tensor, Tensor],
        kept: Rows,
        scored: Rows,
        batch_size: int | None,
        label: str,
        setting: Setting,
        figures: Sequence[SupervisedFigure] = (predictions, calibration),
    ) -> Self:
        """Problem with x [N, D] and y [N, 1], standardised by the training rows.

        A constant input is only centred.
        """
        x, y = data
        x, columns = standardise(x, kept)
        y_mean = y[kept].mean(0)
        y_std = y[kept].std(0, correction=0)
        y = (y - y_mean) / y_std
        return cls(
            name=name,
            target="real",
            train=labelled_rows(x[kept], y[kept], setting),
            test=labelled_rows(x[scored], y[scored], setting),
            batch_size=batch_size,
            task_names=[label],
            y_mean=setting.place(y_mean),
            y_std=setting.place(y_std),
            figures=list(figures),
            evaluation_chunk=100,  # a posterior may hold thousands of networks
            columns=columns,
        )


def standardised_inputs(x: Tensor, kept: Rows) -> Tensor:
    """x [N, D] standardised by the training rows; a constant input is only centred.

    Raises:
        ConfigMismatchError: squares of numbers overflow or underflow.
    """
    check_squares(x[kept], [f"input {j + 1}" for j in range(x.shape[1])])
    return (x - x[kept].mean(0)) / column_scales(x[kept])


def standardise(x: Tensor, kept: Rows) -> tuple[Tensor, InputColumns]:
    """``standardised_inputs``, and their columns."""
    columns = InputColumns.numbered(x.shape[1], x[kept].mean(0), column_scales(x[kept]))
    return standardised_inputs(x, kept), columns


def column_scales(x: Tensor) -> Tensor:
    """Standard deviations of the columns of x [N, D], 1 for a constant one: [D]."""
    std = x.std(0, correction=0)
    return torch.where(is_constant(x), 1.0, std)


def is_constant(x: Tensor) -> Tensor:
    """Columns of x [N, D] that do not vary by more than rounding: bool [D]."""
    return x.std(0, correction=0) <= 1e-12 * x.mean(0).abs()


def check_squares(x: Tensor, names: list[str]) -> None:
    """Raise ConfigMismatchError if non-constant columns of x [N, D] have a standard deviation of 0
    or NaN."""
    std = x.std(0, correction=0)
    unscaled = ~std.isfinite() | ((std == 0) & (x != x[0]).any(0))
    if len(columns := unscaled.nonzero()):
        j = int(columns[0])
        units = "larger" if float(x[:, j].abs().max()) > 1 else "smaller"
        raise ConfigMismatchError(
            f"dataset: {names[j]} has values up to {float(x[:, j].abs().max()):.3g}, with squares "
            f"that are {'not finite' if units == 'larger' else '0'}; give the column in {units} "
            "units"
        )
