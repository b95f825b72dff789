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
    """Rows of real measurements that need no download: 150 irises (4 lengths), or 178 wines (13 analyses), of three classes.

    A random permutation drawn from the seed puts a ``test_share`` aside; values, those of ``columns`` alone where some are
    named, are standardised by the other rows.  Nothing learns from the classes: clusters of held-out rows are held against
    them.  x [N, D].

    Raises ValueError for a column that the set has not.

    Source: Fisher (1936); Forina et al. (1988), as shipped by scikit-learn."""

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
        x, y = table[:, :-1], table[:, -1].long()
        if self.columns is not None:
            if max(self.columns) > x.shape[1]:
                raise ValueError(f"columns: {self.set} has {x.shape[1]}")
            x = x[:, [c - 1 for c in self.columns]]
        order = torch.randperm(len(x), generator=rng.data)
        n_test = max(1, round(self.test_share * len(x)))
        test, train = order[:n_test], order[n_test:]
        x = (x - x[train].mean(0)) / x[train].std(0, correction=0)
        kept, held = (Rows(x[rows].to(setting.device, setting.dtype), 1.0) for rows in (train, test))
        return Unlabelled(self.set, "real", kept, held, None, test_classes=y[test], figures=[clusters])
