"""Counts in cells of one input: coal-mining disasters by year, or a simulated Cox process."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.tables.put_aside import HeldOutRows
from components.figures.supervised.toy_fit import toy_fit
from components.maths.cholesky import jittered_cholesky
from components.maths.kernels import kernel
from components.problems.supervised import Supervised
from components.registry import register

# disasters in each year, 1851 to 1962, 191 in all
COAL = (
    "45410434063340263354531441553425223421322111130010110031"
    "03220111010100021000110233112111124200014000100000100101"
)
LENGTHSCALE = 0.15  # of the simulated log rate, as a share of the domain


@register("dataset", "counts")
class CountsByCell(HeldOutRows, Dataset):
    """Counts y = 0, 1, 2 … in cells along one input, with held-out cells.

    coal: disasters in British coal mines that killed ten or more, by year, 1851 to 1962 (N = 112).
    cox: a simulated log-Gaussian Cox process in ``n_cells`` equal cells, y ~ Poisson(eᶠ), f =
    ln(mean) − s²/2 + s g, s = ``spread``, g a Gaussian process of unit variance, squared
    exponential kernel and a lengthscale of 0.15 of the domain, so that E[y] = ``mean``.  x [N, 1]
    is the standardised index of the cell; counts are not standardised (``model.link=log``).

    Source: Jarrett (1979) and Carlin, Gelfand and Smith (1992) for coal; Møller, Syversveen and
    Waagepetersen (1998) and Boustati (2021), section 2.1.2.2, for the process."""

    kind = "supervised"
    label_kind = "real"
    set: Literal["coal", "cox"]
    n_cells: PositiveInt
    mean: PositiveFloat
    spread: NonNegativeFloat

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        """The problem, with the rate as truth if it is simulated."""
        n = len(COAL) if self.set == "coal" else self.n_cells
        x = torch.arange(n, dtype=torch.float64)[:, None]
        rate = None
        if self.set == "coal":
            y = torch.tensor([[float(digit)] for digit in COAL], dtype=torch.float64)
        else:
            length = x.new_tensor([LENGTHSCALE * n])
            K = kernel(x, x, length, x.new_ones(()), "squared_exponential")
            L, _ = jittered_cholesky(K, 1e-8, "the covariance of the log rate")
            g = L @ torch.randn(n, 1, generator=rng.data, dtype=torch.float64)
            rate = (math.log(self.mean) - 0.5 * self.spread**2 + self.spread * g).exp()
            y = torch.poisson(rate, generator=rng.data)
        task = "disasters" if self.set == "coal" else "count"
        problem = self.make_problem(
            self.name, x, y, target="count", task=task, rng=rng, setting=setting
        )
        truth = None
        if rate is not None:
            cells = torch.cat([problem.train.x, problem.test.x])[:, 0].unique().double().cpu()
            truth = partial(_interpolate, cells, rate[:, 0])
        return replace(problem, figures=[partial(toy_fit, truth=truth), *problem.figures])


def _interpolate(x: Tensor, rate: Tensor, at: Tensor) -> Tensor:
    """The rate at points [B] between cells x [N]: [B, 1]."""
    upper = torch.searchsorted(x, at.contiguous()).clamp(1, len(x) - 1)
    share = (at - x[upper - 1]) / (x[upper] - x[upper - 1])
    return torch.lerp(rate[upper - 1], rate[upper], share)[:, None]
