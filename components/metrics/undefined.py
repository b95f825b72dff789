"""Scores that have no finite value for reasons of their own: one table for problems of every kind.

A score that is not finite and is not in the table has diverged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

Scores = Mapping[str, Any]  # name -> number, or a list where replicates are a dimension


class UndefinedValue(NamedTuple):
    """Values that a score may have where it has no finite one, and what the data or the draws are
    there."""

    allowed: str  # "nan", "inf" (of either sign), "+inf", "-inf", or several with a space between
    because: str


_NO_MOVEMENT = "a coordinate that no chain ever moved"
_UNPREDICTED = "no attacked input has a finite prediction"
_ZERO_STATE = "a true state that is 0 throughout"
_ZERO_VARIANCE = "the first gradient has no variance"

UNDEFINED_VALUES: dict[str, UndefinedValue] = {
    "auc": UndefinedValue("nan", "one class alone among the test labels"),
    "attack_success": UndefinedValue("nan", "no row is right before the attack"),
    "robust_ece": UndefinedValue("nan", _UNPREDICTED),
    "robust_entropy": UndefinedValue("nan", _UNPREDICTED),
    "ess": UndefinedValue("nan inf", _NO_MOVEMENT),
    "ess_tail": UndefinedValue("nan inf", _NO_MOVEMENT),
    "rhat": UndefinedValue("nan inf", _NO_MOVEMENT),
    "rhat_predictions": UndefinedValue("nan inf", "a prediction that is the same in every draw"),
    "e_bfmi": UndefinedValue("nan inf", "energies that are all equal"),
    "weight_ess": UndefinedValue("nan inf", "weights without a tail"),
    "pareto_k": UndefinedValue("nan inf", "weights without a tail"),
    "ksd": UndefinedValue("nan inf", "a log density that cannot be differentiated"),
    "kl": UndefinedValue("+inf", "draws where the target has no density"),
    "z_max": UndefinedValue("nan inf", _NO_MOVEMENT),
    "error_sd": UndefinedValue("nan inf", _NO_MOVEMENT),
    "nmse": UndefinedValue("+inf", _ZERO_STATE),
    "nmse_median": UndefinedValue("+inf", _ZERO_STATE),
    "robust_nmse": UndefinedValue("+inf", _ZERO_STATE),
    "random_nmse": UndefinedValue("+inf", _ZERO_STATE),
    "mape": UndefinedValue("+inf", "observations so near to 0 that their relative errors overflow"),
    "long_run": UndefinedValue("inf", "an effect that never fades"),
    "both_branches": UndefinedValue("nan", "the branches are nowhere apart"),
    "slope_error": UndefinedValue("nan", "a single path"),
    "trace_ratio": UndefinedValue("nan", _ZERO_VARIANCE),
    "norm_ratio": UndefinedValue("nan", _ZERO_VARIANCE),
    "minibatch_share": UndefinedValue("nan", _ZERO_VARIANCE),
    "variance_seconds": UndefinedValue("nan", _ZERO_VARIANCE),
    "total_seconds": UndefinedValue("nan", _ZERO_VARIANCE),
    "total_passes": UndefinedValue("nan", _ZERO_VARIANCE),
    "bias_z": UndefinedValue("+inf", _ZERO_VARIANCE),
    "perplexity": UndefinedValue("+inf", "words that the model holds impossible"),
    "perplexity_truth": UndefinedValue("+inf", "words that the truth holds impossible"),
}

_IMPOSSIBLE = "a label that the model holds impossible"
# of labels with a probability that can be 0; a density of numbers is never 0
UNDEFINED_FOR_CLASSES: dict[str, UndefinedValue] = {
    "nlpp": UndefinedValue("+inf", _IMPOSSIBLE),
    "robust_nlpp": UndefinedValue("nan +inf", f"{_UNPREDICTED}, or {_IMPOSSIBLE}"),
    "log_likelihood": UndefinedValue("-inf", _IMPOSSIBLE),
    "log_score": UndefinedValue("-inf", _IMPOSSIBLE),
}


def stack_scores(each: Sequence[Scores]) -> dict[str, Tensor | float]:
    """Scores of R replicates in one tensor [R] by name, NaN for a replicate that does not have
    one."""
    names = dict.fromkeys(name for scores in each for name in scores)
    return {
        name: torch.tensor(
            [float(scores.get(name, math.nan)) for scores in each], dtype=torch.float64
        )
        for name in names
    }


def reason(name: str, value: float, classes: bool = False) -> str | None:
    """Why a score that is not finite has no finite value; None: it should have one.

    ``classes``: its labels are classes."""
    bare = name.removeprefix("one_ahead/").split("/")[0]
    entry = UNDEFINED_VALUES.get(bare) or (UNDEFINED_FOR_CLASSES.get(bare) if classes else None)
    if entry is None:
        return None
    kind = "nan" if math.isnan(value) else "+inf" if value > 0 else "-inf"
    allowed = entry.allowed.split()
    return entry.because if kind in allowed or (kind != "nan" and "inf" in allowed) else None
