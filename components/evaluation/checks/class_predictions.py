"""Checks of predictions: they are finite; predictions of a classifier use more than one class and
logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from components.contracts.checks import Check
from components.contracts.class_outputs import guess_output_kind
from components.contracts.posteriors import Predicts
from components.contracts.predictive import Categorical, Predictive, is_finite
from components.contracts.roles import Problem
from components.contracts.streams import Rng
from components.metrics import limits
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.replicates.variants import Variants
from components.problems.supervised import Supervised

CLASS_CHECK_TITLE = "predictions use more than one class"
LOGITS = "outputs are logits, not probabilities"

TestPrediction = tuple[str, Supervised, Predictive]  # label of a replicate or variant, its problem


def class_checks(predictions: list[TestPrediction], declared: bool) -> list[Check]:
    """Checks of the class predictions at the test rows; empty for real labels.

    Args:
        predictions: ``predict_test_rows`` of a run.
        declared: True if the kind of the model's outputs was declared, so that only rows that sum
            to one contradict it.
    """
    by_class = [
        (label, split, predictive)
        for label, split, predictive in predictions
        if isinstance(predictive, Categorical) and split.target != "real"
    ]
    if not by_class:
        return []
    return [
        _worst([_check_not_constant(*entry) for entry in by_class]),
        _worst([_check_logit_scale(label, entry, declared) for label, _, entry in by_class]),
    ]


def missing_checks(predictions: list[TestPrediction]) -> list[Check]:
    """Failed check with the number of test rows without a finite prediction; empty if there are
    none."""
    for label, split, predictive in predictions:
        rows = (split.test.mask & ~is_finite(predictive)).any(1)
        if bool(rows.any()):
            scores = "counted as wrong in accuracy, omitted from nlpp, ece and auc"
            if not isinstance(predictive, Categorical):
                scores = "omitted from nlpp, rmse, coverage90 and crps"
            detail = f"{int(rows.sum()):,} of {len(rows):,} test rows{label} have none: {scores}"
            return [Check("test rows have finite predictions", False, detail)]
    return []


def predict_test_rows(problem: Problem, posterior: object, rng: Rng) -> list[TestPrediction]:
    """Predictions of every posterior of a run, with its label and problem.

    Reuses the predictions of ``score``."""
    runs = []
    predictions = []
    if isinstance(problem, SupervisedReplicates) and isinstance(posterior, Sequence):
        for r, (split, member) in enumerate(zip(problem.splits, posterior, strict=True)):
            label = f" of replicate {r + 1}" if problem.replicates > 1 else ""
            runs.append((label, split, member, rng.of(r)))
    elif isinstance(problem, Supervised):
        runs.append(("", problem, posterior, rng))
    for label, split, member, streams in runs:
        several = isinstance(member, Variants)
        variants = (
            {f" of {name}{label}": v for name, v in member.of.items()}
            if several
            else {label: member}
        )
        for name, variant in variants.items():
            if isinstance(variant, Predicts):
                with torch.no_grad():
                    predictive = split.predictive_at(variant, split.test.x, streams)
                predictions.append((name, split, predictive))
    return predictions


def _check_not_constant(label: str, problem: Supervised, predictive: Categorical) -> Check:
    """Failed check if one class is predicted for all rows of a task with labels of several
    classes."""
    guess = predictive.guess
    messages = []
    checked = 0  # [B, T]
    for t in range(problem.n_tasks):
        labels = problem.test.y[problem.test.mask[:, t], t]
        counts = labels.unique(return_counts=True)[1]
        if (
            len(labels) < limits.LABELS
            or len(counts) < 2
            or int(counts.max()) > limits.LARGEST_CLASS * len(labels)
        ):
            continue
        checked += 1
        if len(classes := guess[:, t][guess[:, t] >= 0].unique()) == 1:
            task = f" of task {problem.task_names[t]}" if problem.n_tasks > 1 else ""
            messages.append(
                f"class {int(classes)} for all {len(guess):,} test rows{task}{label}; their labels "
                f"have {len(counts)} classes"
            )
    if not checked:
        return Check(
            CLASS_CHECK_TITLE,
            None,
            f"fewer than {limits.LABELS} test labels, or nearly all of one class (above {limits.LARGEST_CLASS:.0%})",
        )
    used = f"{len(guess.unique())} of {problem.n_classes} classes"
    return Check(
        CLASS_CHECK_TITLE,
        not messages,
        f"{messages[0]}; the model has learned nothing, or its outputs are not logits"
        if messages
        else used,
    )


def _check_logit_scale(label: str, predictive: Categorical, declared: bool) -> Check:
    """Check that fails if logits look like probabilities.

    A logit that is always 0 for a class indicates log odds, not probabilities.
    """
    look = guess_output_kind(predictive.logits)
    constant = bool((predictive.logits == 0).all(0).all(0).any())
    if look == "sums to one" or (look == "in [0, 1]" and not declared and not constant):
        says = "every row sums to one" if look == "sums to one" else "all of them lie in [0, 1]"
        return Check(
            LOGITS,
            False,
            f"{says}{label}; return their logarithms, or set model.outputs=probabilities if the "
            f"model has this key",
        )
    low = float(predictive.logits.min())
    high = float(predictive.logits.max())
    return Check(LOGITS, True, f"{low:.3g} … {high:.3g}")


def _worst(checks: list[Check]) -> Check:
    """The first failed check, else the first passed one, else the first."""
    return min(checks, key=lambda check: {False: 0, True: 1, None: 2}[check.passed])
