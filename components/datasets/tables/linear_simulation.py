"""Labels that are linear in correlated inputs, with known coefficients and noise."""

from __future__ import annotations

from dataclasses import replace

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.problems import Batch
from components.contracts.roles import Dataset, NonEmptyList, Setting, ZeroToBelowOne, ZeroToOne
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.problems.supervised import Supervised
from components.registry import register


@register("dataset", "linear_simulation")
class LinearSimulation(Dataset):
    """Linear regression on correlated inputs with known coefficients and noise variance.

    x ~ N(0, C), C_jk = ρ^|j−k|; y = xᵀβ + N(0, σ²).  ρ near 1 makes XᵀX ill-conditioned.
    Nothing is standardised and there is no intercept.  With probability ``outliers``, N(0, (s σ)²)
    is added to a training label.  Each replicate draws new inputs and labels; ``truth`` of the
    problem holds β and σ², and draws of x1 … xD and sigma2 are scored against it. x [N, D].

    Source: Tibshirani (1996), section 7.2, example 1.
    """

    kind = "supervised"
    label_kind = "real"
    n_train: PositiveInt
    n_test: PositiveInt
    beta: NonEmptyList[float]
    correlation: ZeroToBelowOne
    noise: PositiveFloat
    outliers: ZeroToOne
    outlier_scale: PositiveFloat

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        beta = torch.tensor(self.beta, dtype=setting.dtype)
        D = len(beta)
        place = torch.arange(D, dtype=setting.dtype)
        C = self.correlation ** (place[:, None] - place).abs()
        root = torch.linalg.cholesky(C)

        def rows(n: int) -> Batch:
            x = torch.randn(n, D, generator=rng.data, dtype=setting.dtype) @ root.T
            y = x @ beta + self.noise**0.5 * torch.randn(n, generator=rng.data, dtype=setting.dtype)
            return labelled_rows(x, y[:, None], setting)

        truth: dict[str, Tensor] = {
            "beta": beta.to(setting.device),
            "noise": setting.tensor(self.noise),
        }
        train = rows(self.n_train)
        test = rows(self.n_test)
        if self.outliers:
            n = (self.n_train, 1)
            hit = torch.rand(n, generator=rng.data, dtype=setting.dtype) < self.outliers
            noise = torch.randn(n, generator=rng.data, dtype=setting.dtype) * self.noise**0.5
            shifts = hit * self.outlier_scale * noise
            train = replace(train, y=train.y + shifts.to(setting.device))
        return Supervised(
            self.name, "real", train, test, batch_size=None, task_names=["y"], truth=truth
        )
