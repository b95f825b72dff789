"""Two interleaved half circles."""

from __future__ import annotations

import math

import torch
from pydantic import NonNegativeFloat, PositiveInt

from components.contracts.problems import Batch
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.figures.supervised.calibration import calibration
from components.problems.supervised import Supervised
from components.registry import register


@register("dataset", "two_moons")
class TwoMoons(Dataset):
    """Two interleaved half circles of radius 1 with Gaussian noise, one for each of two equally
    likely classes.

    t ~ U(0, π), y ~ Bernoulli(½), e ~ N(0, s² I):  x = (cos t, sin t) + e for class 0, x = (1 − cos
    t, ½ − sin t) + e for class 1.  Test points are new draws in every replicate.  Inputs are not
    bounded.  x [N, 2], y [N, 1].

    Source: Pedregosa et al. (2011), ``make_moons``, here with random angles and classes."""

    kind = "supervised"
    label_kind = "binary"
    n_train: PositiveInt
    n_test: PositiveInt
    noise: NonNegativeFloat
    batch_size: PositiveInt | None

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        def batch(n: int) -> Batch:
            t = math.pi * torch.rand(n, generator=rng.data, dtype=torch.float64)
            y = torch.randint(2, (n,), generator=rng.data)
            sign = 1 - 2 * y
            # class 1 is class 0 rotated by π and shifted by (1, ½)
            shift = torch.stack([y, y / 2], 1)
            x = sign[:, None] * torch.stack([t.cos(), t.sin()], 1) + shift
            x = x + self.noise * torch.randn(n, 2, generator=rng.data, dtype=torch.float64)
            return labelled_rows(x, y[:, None], setting)

        # drawn first, so that training sets of all sizes share the test points
        test = batch(self.n_test)
        return Supervised(
            name=self.name,
            target="binary",
            train=batch(self.n_train),
            test=test,
            batch_size=self.batch_size,
            n_classes=2,
            task_names=["moon"],
            figures=[calibration],
        )
