"""Labels of a logistic regression with known weights."""

from __future__ import annotations

import torch
from pydantic import PositiveFloat, PositiveInt

from components.contracts.problems import Batch
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.figures.supervised.calibration import calibration
from components.problems.supervised import Supervised
from components.registry import register


@register("dataset", "logistic_synthetic")
class LogisticSynthetic(Dataset):
    """Binary labels of a logistic regression with randomly drawn, known weights and bias.

        x ~ U[−1, 1]^D,   w ~ N(0, s² I),   b ~ N(0, s_0²)
        y ~ Bernoulli(1/(1 + exp(−wᵀx − b)))

    Each replicate redraws all of them; ``truth`` holds weights [D] and bias [1].  Nothing
    is standardised.  Training rows do not depend on ``n_test``.  x [N, D], y [N, 1].

    Source: Boustati (2021), appendix C.3.1.
    """

    kind = "supervised"
    label_kind = "binary"
    n_train: PositiveInt
    n_test: PositiveInt
    n_inputs: PositiveInt
    weight_std: PositiveFloat
    bias_std: PositiveFloat
    batch_size: PositiveInt | None

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        w = self.weight_std * torch.randn(self.n_inputs, generator=rng.data, dtype=torch.float64)
        b = self.bias_std * torch.randn(1, generator=rng.data, dtype=torch.float64)

        def rows(n: int) -> Batch:
            x = 2 * torch.rand(n, self.n_inputs, generator=rng.data, dtype=torch.float64) - 1
            y = torch.rand(n, generator=rng.data, dtype=torch.float64) < torch.sigmoid(x @ w + b)
            return labelled_rows(x, y.long()[:, None], setting)

        train = rows(self.n_train)
        return Supervised(
            self.name,
            "binary",
            train,
            rows(self.n_test),
            self.batch_size,
            n_classes=2,
            task_names=["y"],
            figures=[calibration],
            truth={name: setting.place(v) for name, v in (("weights", w), ("bias", b))},
        )
