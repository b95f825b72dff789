"""Covariances of several tasks as sums of shared and task-specific kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from torch import Tensor, nn

from components.maths.kernels import kernel
from components.models.shallow_gp.prior import (
    CoregionalisedCovariance,
    IndependentCovariance,
)


class OwnCovariance(IndependentCovariance):
    """``IndependentCovariance`` with the points of all tasks in one group, so that it can be added
    to a coregionalised covariance; with a lengthscale per task and input."""

    independent: ClassVar[bool] = False

    def matrix(self, x: Tensor, task: Tensor, z: Tensor, z_task: Tensor) -> Tensor:
        """Covariance between points, [G, n, m]."""
        # Points are scaled by the lengthscales of their tasks first; one product gives all pairs,
        # and pairs of different tasks are masked.
        rate = (-self.log_lengthscale).exp()
        unit_scale = rate.new_ones(1)
        correlation = kernel(
            x * rate[task], z * rate[z_task], unit_scale, unit_scale[0], self.shape
        )
        same = task[..., :, None] == z_task[..., None, :]
        return self.log_variance.exp()[task][..., None] * (correlation * same)


class ColumnCovariance(nn.Module):
    """Covariance of functions of some columns of the points."""

    def __init__(self, inner: IndependentCovariance, columns: slice):
        super().__init__()
        self.n_tasks = inner.n_tasks
        self.independent = inner.independent
        self.inner = inner
        self.columns = columns

    def matrix(self, x: Tensor, task: Tensor, z: Tensor, z_task: Tensor) -> Tensor:
        """Covariance between points, [G, n, m]."""
        return self.inner.matrix(x[..., self.columns], task, z[..., self.columns], z_task)

    def variance(self, x: Tensor, task: Tensor) -> Tensor:
        """Prior variance at points, [G, n]."""
        return self.inner.variance(x[..., self.columns], task)

    def log_hyperprior(self, scale: float) -> Tensor:
        """Log hyper-prior of the function, up to a constant."""
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
        """Covariance between points, [G, n, m]."""
        return sum_of([part.matrix(x, task, z, z_task) for part in self._terms()])

    def variance(self, x: Tensor, task: Tensor) -> Tensor:
        """Prior variance at points of these tasks, [G, n]."""
        return sum_of([part.variance(x, task) for part in self._terms()])

    def log_hyperprior(self, scale: float) -> Tensor:
        """Sum of the parts' log hyper-priors, up to a constant."""
        return sum_of([part.log_hyperprior(scale) for part in self._terms()])


def sum_of(terms: list[Tensor]) -> Tensor:
    """Sum of broadcastable tensors."""
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
