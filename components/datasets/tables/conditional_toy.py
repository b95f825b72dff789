"""What the toy regressions share whose labels have another law at every input: rows drawn, standardised, in label units."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from components.contracts.problems import Batch
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.tables.uci_regression import RawUnits
from components.figures.supervised.calibration import calibration
from components.figures.supervised.predictive_samples import predictive_samples


class LabelLaw(Protocol):
    """y ~ p(y|x) for inputs x [B], in float64."""

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor: ...


def conditional_toy(
    name: str,
    law: LabelLaw,
    reach: float,
    n_train: int,
    n_test: int,
    batch_size: int | None,
    rng: Rng,
    setting: Setting,
) -> RawUnits:
    """x uniform on [−reach, reach], y ~ ``law``; both standardised by the training rows, scores in the units of y."""
    u = torch.rand(n_train + n_test, generator=rng.data, dtype=torch.float64, device=rng.data.device).cpu()
    x = reach * (2 * u - 1)
    y = law(x, rng.data)
    x, y = x[:, None], y[:, None]
    x_mean, x_std = x[:n_train].mean(0), x[:n_train].std(0, correction=0)
    y_mean, y_std = y[:n_train].mean(0), y[:n_train].std(0, correction=0)

    def batch(rows: slice) -> Batch:
        inputs, labels = (x[rows] - x_mean) / x_std, (y[rows] - y_mean) / y_std
        mask = torch.ones(labels.shape, dtype=torch.bool, device=setting.device)
        return Batch(inputs.to(setting.device, setting.dtype), labels.to(setting.device, setting.dtype), mask, 1.0)

    return RawUnits(
        name=name,
        target="real",
        train=batch(slice(0, n_train)),
        test=batch(slice(n_train, None)),
        batch_size=batch_size,
        task_names=["y"],
        y_mean=y_mean.to(setting.device, setting.dtype),
        y_std=y_std.to(setting.device, setting.dtype),
        figures=[predictive_samples, calibration],
        evaluation_chunk=100,
    )
