"""Binary labels of a probit or logistic regression with known coefficients and correlated inputs."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import PositiveInt

from components.contracts.problems import Batch
from components.contracts.roles import Dataset, NonEmptyList, Setting, ZeroToBelowOne
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.figures.supervised.calibration import calibration
from components.problems.supervised import Supervised
from components.registry import register


@register("dataset", "binary_simulation")
class BinarySimulation(Dataset[Supervised]):
    """Binary regression with correlated inputs and known coefficients, small enough for exact
    posteriors.

    x ~ N(0, C), C_jk = ρ^|j−k|; p(y = 1 | x) = Φ(β_0 + xᵀβ), or 1/(1 + exp(−β_0 − xᵀβ)).  Nothing
    is standardised; every replicate redraws inputs and labels.  The scores include posterior means
    and standard deviations of named parameters.  x [N, D].

    Source: designed for this project, after Albert and Chib (1993), section 3."""

    kind = "supervised"
    label_kind = "binary"
    n_train: PositiveInt
    n_test: PositiveInt
    link: Literal["probit", "logistic"]
    intercept: float
    beta: NonEmptyList[float]
    correlation: ZeroToBelowOne

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        beta = torch.tensor(self.beta, dtype=torch.float64)
        place = torch.arange(len(beta), dtype=torch.float64)
        root = torch.linalg.cholesky(self.correlation ** (place[:, None] - place).abs())

        def rows(n: int) -> Batch:
            x = torch.randn(n, len(beta), generator=rng.data, dtype=torch.float64) @ root.T
            f = self.intercept + x @ beta
            share = torch.special.ndtr(f) if self.link == "probit" else f.sigmoid()
            y = (torch.rand(n, generator=rng.data, dtype=torch.float64) < share).long()
            return labelled_rows(x, y[:, None], setting)

        truth = {"beta": setting.place(torch.cat([torch.tensor([self.intercept]), beta]))}
        train = rows(self.n_train)
        test = rows(self.n_test)
        return Supervised(
            self.name,
            "binary",
            train,
            test,
            batch_size=None,
            n_classes=2,
            task_names=["y"],
            figures=[calibration],
            truth=truth,
            moments=True,
        )
