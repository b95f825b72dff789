"""Labels of a shallow network of one input with known units."""

from __future__ import annotations

from functools import partial

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.problems import Batch
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.errors import ConfigMismatchError
from components.figures.supervised.toy_fit import toy_fit
from components.problems.supervised import Supervised
from components.registry import register


@register("dataset", "network_simulation")
class NetworkSimulation(Dataset[Supervised]):
    """Regression on one input, simulated from a known number of logistic units.

    y = x b + Σ_j β_j ψ(w_j (x − c_j)) + N(0, σ²), ψ(η) = 1/(1 + e^−η), x uniform on [−√3, √3], with
    variance 1.  Nothing is standardised; every replicate redraws inputs and labels.  The scores
    include posterior means and standard deviations of named parameters. x [N, 1].

    Raises ConfigMismatchError if beta, steepness and centres have different lengths.

    Source: designed for this project, after Gallego (2021), section 1.3.2."""

    kind = "supervised"
    label_kind = "real"
    n_train: PositiveInt
    n_test: PositiveInt
    slope: float
    beta: list[float]
    steepness: list[float]
    centres: list[float]
    noise: PositiveFloat

    def function(self, x: Tensor) -> Tensor:
        """The true function f [B] at x [B]."""
        units = zip(self.beta, self.steepness, self.centres, strict=True)
        return sum((b * (w * (x - c)).sigmoid() for b, w, c in units), self.slope * x)

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        if not len(self.beta) == len(self.steepness) == len(self.centres):
            raise ConfigMismatchError(
                "dataset.beta, dataset.steepness, dataset.centres: must have equal lengths, one value per unit"
            )

        def rows(n: int) -> Batch:
            x = 3**0.5 * (2 * torch.rand(n, generator=rng.data, dtype=torch.float64) - 1)
            e = torch.randn(n, generator=rng.data, dtype=torch.float64)
            y = self.function(x) + self.noise**0.5 * e
            return labelled_rows(x[:, None], y[:, None], setting)

        return Supervised(
            self.name,
            "real",
            rows(self.n_train),
            rows(self.n_test),
            batch_size=None,
            task_names=["y"],
            figures=[partial(toy_fit, truth=lambda x: self.function(x)[:, None])],
            moments=True,
        )
