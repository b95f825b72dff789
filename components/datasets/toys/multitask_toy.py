"""Two functions of one input with a nonlinear shared process."""

from __future__ import annotations

import math
from functools import partial

import torch
from pydantic import NonNegativeFloat, PositiveInt
from torch import Tensor

from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.figures.supervised.calibration import calibration
from components.figures.supervised.hinton import hinton
from components.figures.supervised.toy_fit import toy_fit
from components.problems.supervised import Supervised
from components.registry import register


def g(x: Tensor) -> Tensor:
    """g(x) = −sin(8π(x+1))/(2x+1) − x⁴, the shared process."""
    return -torch.sin(8 * math.pi * (x + 1)) / (2 * x + 1) - x**4


def f1(x: Tensor) -> Tensor:
    """f₁(x) = cos²(g(x)) + h₁(x), h₁(x) = sin(3x)."""
    return torch.cos(g(x)) ** 2 + torch.sin(3 * x)


def f2(x: Tensor) -> Tensor:
    """f₂(x) = sin(10x) g²(x) + h₂(x), h₂(x) = 3x."""
    return torch.sin(10 * x) * g(x) ** 2 + 3 * x


def truth(x: Tensor) -> Tensor:
    """Both functions at x [B], in the units of the labels -> [B, 2]."""
    return torch.stack([f1(x), f2(x)], -1)


@register("dataset", "multitask_toy")
class MultitaskToy(Dataset):
    """Toy regression of two tasks that combine a shared and a private process non-linearly.

    yᵗ = fᵗ(x) + ε, ε ~ N(0, noise²), x uniform on [0, 1], with f₁ = cos²(g) + sin(3x) and f₂ =
    sin(10x) g² + 3x where g(x) = −sin(8π(x+1))/(2x+1) − x⁴.  When asymmetric, each task has its own
    inputs, so that every row carries one label; otherwise every row carries both.  Labels are
    standardised per task by the training labels; inputs stay in [0, 1].  The test rows are an even
    grid with both labels: the functions themselves, or noisy observations of them.  The thesis does
    not give the number of points or the noise; the defaults were chosen here.

    Source: Boustati (2021), section 3.1."""

    kind = "supervised"
    traits = {"several_tasks"}
    label_kind = "real"
    n_train: PositiveInt
    n_test: PositiveInt
    noise: NonNegativeFloat
    asymmetric: bool
    noisy_test: bool
    batch_size: PositiveInt | None

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        n = self.n_train
        tasks = 2
        x = torch.rand(n * tasks if self.asymmetric else n, generator=rng.data, dtype=torch.float64)
        y = truth(x) + self.noise * torch.randn(
            x.shape[0], tasks, generator=rng.data, dtype=torch.float64
        )
        mask = torch.ones_like(y, dtype=torch.bool)
        if self.asymmetric:
            # [2N, 2]
            mask = torch.arange(tasks).repeat_interleave(n)[:, None] == torch.arange(tasks)
        x_test = torch.linspace(0, 1, self.n_test, dtype=torch.float64)
        y_test = truth(x_test)
        if self.noisy_test:
            y_test = y_test + self.noise * torch.randn(
                y_test.shape, generator=rng.data, dtype=torch.float64
            )

        count = mask.sum(0)
        y_mean = (y * mask).sum(0) / count
        y_std = (((y - y_mean) ** 2 * mask).sum(0) / count).sqrt()
        # a single label per task has no standard deviation
        y_std = torch.where(y_std > 0, y_std, 1.0)
        y = torch.where(mask, (y - y_mean) / y_std, 0.0)

        return Supervised(
            name=self.name,
            target="real",
            train=labelled_rows(x[:, None], y, setting, mask),
            test=labelled_rows(x_test[:, None], (y_test - y_mean) / y_std, setting),
            batch_size=self.batch_size,
            task_names=["task 1", "task 2"],
            y_mean=setting.place(y_mean),
            y_std=setting.place(y_std),
            bounds=(0.0, 1.0),
            figures=[partial(toy_fit, truth=truth), hinton, calibration],
        )
