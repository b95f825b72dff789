"""Shared parts of the linear models: design matrix, column names, and labelled rows."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.problems import Batch
from components.errors import ConfigMismatchError
from components.problems.supervised import Supervised


def check_one_task(problem: Supervised, model: str) -> None:
    """Raise ConfigMismatchError for a multi-task problem."""
    if problem.n_tasks != 1:
        raise ConfigMismatchError(
            f"model={model}: has one output, but dataset={problem.name} has {problem.n_tasks} tasks; use igp or mlp"
        )


def name_columns(n_inputs: int, intercept: bool) -> list[str]:
    """Names of the coefficients, intercept first."""
    return ["intercept"] * intercept + [f"x{j + 1}" for j in range(n_inputs)]


def design(x: Tensor, intercept: bool) -> Tensor:
    """x [B, D], preceded by a column of ones if there is an intercept: [B, D] or [B, 1 + D]."""
    return torch.cat([x.new_ones(len(x), 1), x], 1) if intercept else x


def prior_scales(problem: Supervised, scale: float, intercept_scale: float | None) -> Tensor:
    """Prior standard deviations of the coefficients [D], the intercept's first unless
    ``intercept_scale`` is None."""
    first = [] if intercept_scale is None else [intercept_scale]
    return problem.train.x.new_tensor(first + [scale] * problem.n_inputs)


def predictor(beta: Tensor, x: Tensor, intercept: bool) -> Tensor:
    """β x for K coefficient vectors in one product: β [K, D or 1 + D], x [B, D] -> [K, B]."""
    return torch.addmm(beta[:, :1], beta[:, 1:], x.T) if intercept else beta @ x.T


def select_labelled(batch: Batch, intercept: bool) -> tuple[Tensor, Tensor]:
    """Design matrix and labels of the rows with an observed label: [N, D], [N]."""
    is_labelled = batch.mask[:, 0]
    return design(batch.x[is_labelled], intercept), batch.y[is_labelled, 0]
