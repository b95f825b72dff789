"""Covariances of several tasks that are sums: shared kernels and a kernel of each task's own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

from torch import Tensor, nn

from components.maths.kernels import PRODUCT_SHAPES, Shape, kernel, prior_variance
from components.models.shallow_gp.prior import (
    CoregionalisedCovariance,
    IndependentCovariance,
    log_normal,
)


class OwnCovariance(nn.Module):
    """Cov[f_t(x), f_t'(x')] = δ_tt' σ_t² κ(Σ_d (x_d − x'_d)²/ℓ_td²), for points of any groups.

    ``IndependentCovariance`` has the same prior with a group for each task; here points of all
    tasks are in one group, so that it can be added to a coregionalised covariance."""

    independent: ClassVar[bool] = False

    def __init__(
        self, shape: Shape, lengthscale: float, variance: float, n_tasks: int, like: Tensor
    ):
        super().__init__()
        self.shape = shape
        self.n_tasks = n_tasks
        self.initial = (lengthscale, variance)
        size = (n_tasks, like.shape[-1])
        self.log_lengthscale = nn.Parameter(like.new_full(size, math.log(lengthscale)))
        self.log_variance = nn.Parameter(like.new_full((n_tasks,), math.log(variance)))

    def matrix(self, x: Tensor, task: Tensor, z: Tensor, z_task: Tensor) -> Tensor:
        """Covariance of points with points, [G, n, m]."""
        # A task's lengthscales divide its points beforehand: one product of all pairs, of which
        # those of two tasks are then masked.
        rate = (-self.log_lengthscale).exp()
        one = rate.new_ones(1)
        correlation = kernel(x * rate[task], z * rate[z_task], one, one[0], self.shape)
        same = task[..., :, None] == z_task[..., None, :]
        return self.log_variance.exp()[task][..., None] * (correlation * same)

    def variance(self, x: Tensor, task: Tensor) -> Tensor:
        """Prior variance at points of these tasks, [G, n]: the same wherever they are, unless the
        kernel is one of products."""
        variance = self.log_variance.exp()[task]
        if self.shape not in PRODUCT_SHAPES:
            return variance
        rate = (-self.log_lengthscale).exp()
        return variance * prior_variance(x * rate[task], rate.new_ones(1), self.shape)

    def log_hyperprior(self, scale: float) -> Tensor:
        """ln ℓ and ln σ² are normal around their initial values; up to a constant."""
        lengthscale, variance = self.initial
        return log_normal(self.log_lengthscale, lengthscale, scale) + log_normal(
            self.log_variance, variance, scale
        )


class ColumnCovariance(nn.Module):
    """Covariance of functions of some columns of the points."""

    def __init__(self, inner: IndependentCovariance, columns: slice):
        super().__init__()
        self.n_tasks = inner.n_tasks
        self.independent = inner.independent
        self.inner = inner
        self.columns = columns

    def matrix(self, x: Tensor, task: Tensor, z: Tensor, z_task: Tensor) -> Tensor:
        """Covariance of points with points, [G, n, m]."""
        return self.inner.matrix(x[..., self.columns], task, z[..., self.columns], z_task)

    def variance(self, x: Tensor, task: Tensor) -> Tensor:
        """Prior variance at points, [G, n]."""
        return self.inner.variance(x[..., self.columns], task)

    def log_hyperprior(self, scale: float) -> Tensor:
        """That of the function; up to a constant."""
        return self.inner.log_hyperprior(scale)


Term = CoregionalisedCovariance | OwnCovariance | ColumnCovariance


class SummedCovariance(nn.Module):
    """Covariance of a sum of independent functions f_t = Σ_p f_pt: the covariances add."""

    def __init__(self, parts: Sequence[Term]):
        super().__init__()
        self.n_tasks = parts[0].n_tasks
        self.independent = parts[0].independent
        self.parts = nn.ModuleList(parts)

    def _terms(self) -> Iterator[Term]:
        for part in self.parts:
            assert isinstance(part, Term)
            yield part

    def matrix(self, x: Tensor, task: Tensor, z: Tensor, z_task: Tensor) -> Tensor:
        """Covariance of points with points, [G, n, m]."""
        return sum_of([part.matrix(x, task, z, z_task) for part in self._terms()])

    def variance(self, x: Tensor, task: Tensor) -> Tensor:
        """Prior variance at points of these tasks, [G, n]."""
        return sum_of([part.variance(x, task) for part in self._terms()])

    def log_hyperprior(self, scale: float) -> Tensor:
        """Sum over the parts; up to a constant."""
        return sum_of([part.log_hyperprior(scale) for part in self._terms()])


def sum_of(terms: list[Tensor]) -> Tensor:
    """Sum of tensors that broadcast."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
