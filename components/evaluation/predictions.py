"""Predictions of a posterior at the test inputs, as a table stored with a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from components.contracts.posteriors import Predicts
from components.contracts.predictive import Categorical
from components.contracts.roles import Problem
from components.contracts.streams import Rng
from components.figures.supervised.tasks import label_units
from components.problems.supervised import Supervised

if TYPE_CHECKING:
    import pandas as pd


def predicted_table(problem: Problem, posterior: object, rng: Rng) -> pd.DataFrame:
    """Table with a row for each test label: row, task, label, predictive mean and sd.

    Values are in units of the labels, which must be real.  Reuses the draws of ``score``.
    """
    import pandas as pd

    assert isinstance(problem, Supervised), "keep_predictions is rejected without labels"
    assert isinstance(posterior, Predicts), "the problem's scores require it too"
    with torch.no_grad():
        predictive = problem.predictive_at(posterior, problem.test.x, rng)
    assert not isinstance(predictive, Categorical), (
        "keep_predictions is rejected unless labels are real"
    )
    test = problem.test
    names = problem.task_names or [""] * problem.n_tasks
    location, scale = label_units(problem)
    values = {
        "label": location + scale * test.y,
        "mean": location + scale * predictive.mean,
        "sd": scale * predictive.variance.sqrt(),
    }
    rows, tasks = test.mask.nonzero(as_tuple=True)
    columns = {name: value[rows, tasks].double().cpu().numpy() for name, value in values.items()}
    return pd.DataFrame(
        {"row": rows.cpu().numpy(), "task": [names[t] for t in tasks.tolist()], **columns}
    )
