"""Names and scales of the tasks of a labelled problem, for figures."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.problems import LabelledProblem


def name_tasks(problem: LabelledProblem) -> list[str]:
    """Names of the tasks, or numbers if they are unnamed."""
    return problem.task_names or [f"task {t + 1}" for t in range(problem.n_tasks)]


def label_units(problem: LabelledProblem) -> tuple[Tensor, Tensor]:
    """Location and scale of the labels of each task, 0 and 1 if not known, [T] each."""
    label = problem.train.y[0]
    location = torch.zeros_like(label) if problem.y_mean is None else problem.y_mean
    return location, torch.ones_like(label) if problem.y_std is None else problem.y_std
