"""Noisy labels of a function of known smoothness on a regular design."""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.problems import Batch
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.figures.supervised.toy_fit import toy_fit
from components.problems.known_function import KnownFunction
from components.registry import register


@register("dataset", "smooth_function")
class SmoothFunction(Dataset[KnownFunction]):
    """A function on [0, 1] of known smoothness with Gaussian noise: a random cosine series, or a
    straight line.
    f₀(x) = Σ_j c_j √2 cos(π j x), c_j = ± s j^{−β−½}/‖·‖, j = 1 … J, with random signs in every
    replicate.  As J → ∞ it lies in Sobolev spaces of every order below β, but not of order β.
    ``smoothness`` line: f₀(x) = s √12 (x − ½), of any order.  In both cases ∫ f₀² = s².  y = f₀(x)
    + N(0, σ²), training inputs x_i = (i − ½)/N, test inputs uniform. x [N, 1].

    Source: designed for this project, after van der Vaart & van Zanten (2011).
    """

    kind = "supervised"
    traits = {"known_function"}
    label_kind = "real"
    n_train: PositiveInt
    n_test: PositiveInt
    smoothness: PositiveFloat | Literal["line"]
    terms: PositiveInt
    scale: PositiveFloat
    noise: PositiveFloat

    def load(self, rng: Rng, setting: Setting) -> KnownFunction:
        j = torch.arange(1, self.terms + 1, dtype=torch.float64)
        sign = 2.0 * torch.randint(2, (self.terms,), generator=rng.data) - 1
        beta = 1.0 if self.smoothness == "line" else self.smoothness
        size = j ** (-beta - 0.5)
        c = (self.scale * sign * size / size.norm()).to(setting.device)
        pi_j = (math.pi * j).to(setting.device)

        def f0(x: Tensor) -> Tensor:
            points = x[:, 0].double().to(c.device)
            if self.smoothness == "line":
                return (self.scale * math.sqrt(12) * (points - 0.5)).to(x)
            parts = [
                math.sqrt(2) * torch.cos(part[:, None] * pi_j) @ c for part in points.split(256)
            ]
            return torch.cat(parts).to(x)

        def batch(x: Tensor) -> Batch:
            x = setting.place(x[:, None])
            e = torch.randn(len(x), generator=rng.data, dtype=torch.float64).to(x)
            return labelled_rows(x, (f0(x) + self.noise**0.5 * e)[:, None], setting)

        test = batch(torch.rand(self.n_test, generator=rng.data, dtype=torch.float64))
        train = batch((torch.arange(self.n_train, dtype=torch.float64) + 0.5) / self.n_train)
        return KnownFunction(
            name=self.name,
            target="real",
            train=train,
            test=test,
            batch_size=None,
            task_names=["y"],
            figures=[partial(toy_fit, truth=lambda x: f0(x[:, None])[:, None])],
            f0=f0,
            smoothness=math.inf if self.smoothness == "line" else self.smoothness,
            noise=self.noise,
        )
