"""Check that every score is a number, or missing for a known reason."""

from __future__ import annotations

import math

from components.contracts.capabilities import CategoricalSeries
from components.contracts.checks import FINITE, Check, Scores
from components.contracts.roles import Problem
from components.errors import list_names
from components.metrics import undefined
from components.metrics.names import SCORES
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.supervised import Supervised
from components.series.sequence import Sequence


def finite_scores(scores: Scores, problem: Problem) -> Check:
    """Check that every score of every replicate is a number.

    Exceptions are scores for which ``metrics.undefined`` gives a reason, and scores of
    tasks without test labels.
    """
    problem = problem.splits[0] if isinstance(problem, SupervisedReplicates) else problem
    # class numbers, unlike real labels, can have probability 0
    if isinstance(problem, Supervised):
        classes = problem.target != "real"
    else:
        classes = isinstance(problem, Sequence) and isinstance(problem.system, CategoricalSeries)
    failures: list[str] = []
    excused: dict[str, list[str]] = {}  # reason -> scores
    for name, values in scores.items():
        for r, value in enumerate(values if isinstance(values, list) else [values]):
            if math.isfinite(value):
                continue
            because = _missing_label_reason(name, value, problem) or undefined.reason(
                name, value, classes
            )
            if because is None:
                failures.append(
                    f"{name} {value}"
                    + (f" of replicate {r + 1}" if isinstance(values, list) else "")
                )
            elif name not in excused.setdefault(because, []):
                excused[because].append(name)
    if failures:
        return Check(FINITE, False, list_names(failures))
    details = [
        f"{len(scores)} scores",
        *(f"{list_names(names)} without a value: {why}" for why, names in excused.items()),
    ]
    return Check(FINITE, True, "; ".join(details))


def _missing_label_reason(name: str, value: float, problem: object) -> str | None:
    """Reason for a NaN score of labels: its task has no test labels, or no task has any."""
    if not isinstance(problem, Supervised) or not math.isnan(value):
        return None
    labelled = problem.test.mask.any(0).tolist()
    bare, _, part = name.partition("/")
    if not any(labelled) and bare.removeprefix("robust_") in SCORES["of_labels"]:
        return "no test row has a label"
    tasks = (
        task
        for task, is_labelled in zip(problem.task_names, labelled, strict=False)
        if not is_labelled
    )
    if any(part == task or part.startswith(f"{task}/") for task in tasks):
        return "no test row has a label of the task"
    return None
