"""Measurements of flowers and wines, their classes put aside."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field

from components.contracts.problems import Kind, Rows, Values
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.bundled import locate_package
from components.figures.variational.clusters import clusters
from components.problems.unlabelled import Unlabelled
from components.registry import register

FILES = {"iris": "iris.csv", "wine": "wine_data.csv"}


@register("dataset", "measured_rows")
class MeasuredRows(Dataset[Unlabelled]):
    """Measured data that need no download: 150 irises or 178 wines, of three classes.

    Irises have 4 lengths, wines 13 analyses.  A random permutation drawn from the seed
    holds out a ``test_share``; values are standardised by the other rows, and only
    ``columns`` are used if any are named.  Classes are never used for learning: clusters of
    held-out rows are compared with them.  x [N, D].

    Raises:
        ValueError: the set has no such column.

    Source: Fisher (1936); Forina et al. (1988), as shipped by scikit-learn.
    """

    kind: ClassVar[Kind] = "unlabelled"
    values: ClassVar[Values | None] = "real"
    set: Literal["iris", "wine"]
    columns: list[Annotated[int, Field(ge=1)]] | None
    test_share: Annotated[float, Field(gt=0, lt=1)]

    def identity(self, data_dir: object, offline: bool) -> str:
        return self.set

    def load(self, rng: Rng, setting: Setting) -> Unlabelled:
        path = locate_package("sklearn") / "datasets" / "data" / FILES[self.set]
        table = torch.from_numpy(np.loadtxt(path, delimiter=",", skiprows=1))
        x = table[:, :-1]
        y = table[:, -1].long()
        if self.columns is not None:
            if max(self.columns) > x.shape[1]:
                raise ValueError(f"columns: {self.set} has {x.shape[1]}")
            x = x[:, [c - 1 for c in self.columns]]
        order = torch.randperm(len(x), generator=rng.data)
        n_test = max(1, round(self.test_share * len(x)))
        test = order[:n_test]
        train = order[n_test:]
        x = (x - x[train].mean(0)) / x[train].std(0, correction=0)
        train_rows, test_rows = (
            Rows(x[rows].to(setting.device, setting.dtype), 1.0) for rows in (train, test)
        )
        return Unlabelled(
            self.set, "real", train_rows, test_rows, None, test_classes=y[test], figures=[clusters]
        )
