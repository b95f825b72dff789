"""Divergence: an objective that is no longer finite stops the run before its next checkpoint."""

from __future__ import annotations

import math
import re
from pathlib import Path

from components.contracts.checks import FINITE
from components.contracts.requirements import RATES
from components.contracts.roles import Inference, variant_info_names
from components.errors import NumericalError
from runner.execution.scores import Scores
from runner.record.checks import combine_checks
from runner.record.facts import Facts

# diagnostics that must stay finite
MONITORED_METRICS = ("elbo", "objective", "loss", "log_likelihood", "log_joint")

SCALES = "check the scales of the data and of the model's prior"


def add_error_location(
    error: NumericalError, step: int, replicate: int, inference: Inference | None = None
) -> NumericalError:
    """Add step and replicate to an error; keys that ``inference`` lacks are not suggested."""
    keys = re.findall(r"\binference\.(\w+)", error.mend)
    lacks = inference is not None and keys and not any(key in dict(inference) for key in keys)
    mend = _lower_rates(inference) if inference is not None and lacks else error.mend
    return NumericalError(f"step {step}, replicate {replicate + 1}: {error.quantity}", mend)


def explain_divergence(error: NumericalError, folder: Path | None) -> str:
    """Message about a diverged run in this folder."""
    saved = folder is not None and any((folder / "checkpoints").glob("*"))
    return f"diverged: {error}{'; the last good checkpoint is kept' if saved else ''}"


def check_finite(info: Scores, inference: Inference, step: int, replicate: int) -> None:
    """Raise NumericalError, with step and fix, if a monitored value is not finite.

    At the first step the initial state is the cause, so learning rates are not suggested."""
    for name in variant_info_names(MONITORED_METRICS, inference):
        value = info.get(name)
        if value is None:
            continue
        finite = all(map(math.isfinite, value)) if isinstance(value, list) else math.isfinite(value)
        if not finite:
            mend = _lower_rates(inference) if step > 1 else SCALES
            error = NumericalError(f"{name} is {value}", mend)
            raise add_error_location(error, step, replicate)


def check_scores(facts: Facts, inference: Inference) -> None:
    """Raise NumericalError if a check of a finished replicate reports scores that are not finite."""
    for check in combine_checks(facts, "run"):
        if check["check"] == FINITE and check["passed"] is False:
            mend = " or ".join(dict.fromkeys([_lower_rates(inference), SCALES]))
            raise NumericalError(f"scores are not finite: {check['detail']}", mend)


def _lower_rates(inference: Inference) -> str:
    keys = dict(inference)
    rates = [f"inference.{key} (now {keys[key]})" for key in RATES if keys.get(key) is not None]
    return f"lower {' or '.join(rates)}" if rates else SCALES
