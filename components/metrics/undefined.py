"""Scores that have no finite value for reasons of their own: one table for problems of every kind.

A score that is not finite and is not in the table has diverged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

Scores = Mapping[str, Any]  # name -> number, or a list where replicates are a dimension


class NoValue(NamedTuple):
    """Values that a score may have where it has no finite one, and what the data or the draws are there."""

    allowed: str  # "nan", "inf" (of either sign), "+inf", "-inf", or several with a space between
    because: str


_MOVED = "a coordinate that no chain ever moved"
_ZERO = "a true state that is 0 throughout"
_LEVEL = "the first gradient has no variance"

NO_VALUE: dict[str, NoValue] = {
    "auc": NoValue("nan", "one class alone among the test labels"),
    "attack_success": NoValue("nan", "no row is right before the attack"),
    "ess": NoValue("nan inf", _MOVED),
    "ess_tail": NoValue("nan inf", _MOVED),
    "rhat": NoValue("nan inf", _MOVED),
    "rhat_predictions": NoValue("nan inf", "a prediction that is the same in every draw"),
    "e_bfmi": NoValue("nan inf", "energies that are all equal"),
    "weight_ess": NoValue("nan inf", "weights without a tail"),
    "pareto_k": NoValue("nan inf", "weights without a tail"),
    "ksd": NoValue("nan inf", "a log density that cannot be differentiated"),
    "kl": NoValue("+inf", "draws where the target has no density"),
    "z_max": NoValue("nan inf", _MOVED),
    "error_sd": NoValue("nan inf", _MOVED),
    "nmse": NoValue("+inf", _ZERO),
    "nmse_median": NoValue("+inf", _ZERO),
    "robust_nmse": NoValue("+inf", _ZERO),
    "random_nmse": NoValue("+inf", _ZERO),
    "mape": NoValue("+inf", "observations so near to 0 that their relative errors overflow"),
    "long_run": NoValue("inf", "an effect that never fades"),
    "both_branches": NoValue("nan", "the branches are nowhere apart"),
    "slope_error": NoValue("nan", "a single path"),
    "trace_ratio": NoValue("nan", _LEVEL),
    "norm_ratio": NoValue("nan", _LEVEL),
    "minibatch_share": NoValue("nan", _LEVEL),
    "variance_seconds": NoValue("nan", _LEVEL),
    "perplexity": NoValue("+inf", "words that the model holds impossible"),
    "perplexity_truth": NoValue("+inf", "words that the truth holds impossible"),
}

_IMPOSSIBLE = "a label that the model holds impossible"
# of labels whose probability can be 0; a density of numbers never is
OF_CLASSES: dict[str, NoValue] = {
    "nlpp": NoValue("+inf", _IMPOSSIBLE),
    "robust_nlpp": NoValue("+inf", _IMPOSSIBLE),
    "log_likelihood": NoValue("-inf", _IMPOSSIBLE),
    "log_score": NoValue("-inf", _IMPOSSIBLE),
}


def stack_scores(each: Sequence[Scores]) -> dict[str, Tensor | float]:
    """Scores of R replicates in one tensor [R] by name, NaN for a replicate that does not have one."""
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
    entry = NO_VALUE.get(bare) or (OF_CLASSES.get(bare) if classes else None)
    if entry is None:
        return None
    kind = "nan" if math.isnan(value) else "+inf" if value > 0 else "-inf"
    allowed = entry.allowed.split()
    return entry.because if kind in allowed or (kind != "nan" and "inf" in allowed) else None
