"""Progression of diabetes from ten measurements of 442 patients."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field

from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.bundled import read_table
from components.datasets.labelled_rows import labelled_rows
from components.problems.supervised import Supervised
from components.registry import register

PATIENTS = 442


@register("dataset", "diabetes")
class Diabetes(Dataset):
    """Progression of diabetes after one year, from age, sex, body mass, blood pressure and six
    serum measurements.

    442 patients and ten inputs, some of them nearly collinear (two cholesterol levels have a
    correlation of 0.9); no download is needed.  A random permutation drawn from the seed holds out
    ``n_test`` patients; inputs and label are standardised by the other rows.  x [N, 10].

    Source: Efron, Hastie, Johnstone and Tibshirani (2004), as shipped by scikit-learn."""

    kind = "supervised"
    label_kind = "real"
    n_test: Annotated[int, Field(ge=1, le=PATIENTS - 20)]

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        x = torch.from_numpy(read_table("diabetes_data_raw.csv.gz")).to(setting.dtype)  # [442, 10]
        # [442, 1]
        y = torch.from_numpy(read_table("diabetes_target.csv.gz")).to(setting.dtype)[:, None]
        order = torch.randperm(PATIENTS, generator=rng.data)
        test = order[: self.n_test]
        train = order[self.n_test :]
        y_mean = y[train].mean(0)
        y_std = y[train].std(0, correction=0)
        x = (x - x[train].mean(0)) / x[train].std(0, correction=0)
        y = (y - y_mean) / y_std

        return Supervised(
            self.name,
            "real",
            labelled_rows(x[train], y[train], setting),
            labelled_rows(x[test], y[test], setting),
            batch_size=None,
            task_names=["progression"],
            y_mean=y_mean.to(setting.device),
            y_std=y_std.to(setting.device),
        )
