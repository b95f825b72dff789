"""A run whose objective is no longer finite has diverged: it is stopped while its last checkpoint is still good."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from components.contracts.checks import FINITE
from components.contracts.keys import RATES
from components.contracts.roles import Inference, of_variants
from components.trouble import NumericalTrouble
from runner.execution.scores import Scores
from runner.record.checks import combined

WATCHED = ("elbo", "objective", "loss", "log_likelihood", "log_joint")  # information that must stay finite


@contextmanager
def naming_step(step: int, replicate: int) -> Iterator[None]:
    """Numerical trouble in here says at which step of which replicate it came."""
    try:
        yield
    except NumericalTrouble as error:
        raise named(error, step, replicate) from error


def named(error: NumericalTrouble, step: int, replicate: int) -> NumericalTrouble:
    """The same trouble, saying at which step of which replicate it came."""
    return NumericalTrouble(f"step {step}, replicate {replicate + 1}: {error.quantity}", error.mend)


def diverged(error: NumericalTrouble, folder: Path | None) -> str:
    """What to tell the user of a run in this folder that has."""
    saved = folder is not None and any((folder / "checkpoints").glob("*"))
    return f"diverged: {error}{'; the last good checkpoint is kept' if saved else ''}"


def check_finite(info: Scores, inference: Inference) -> None:
    """Raises NumericalTrouble, naming the key to lower, when a watched value is not finite."""
    for name in of_variants(WATCHED, inference):
        value = info.get(name)
        if value is None:
            continue
        finite = all(map(math.isfinite, value)) if isinstance(value, list) else math.isfinite(value)
        if not finite:
            raise NumericalTrouble(f"{name} is {value}", _mend(inference))


def check_scores(facts: dict[str, Any], inference: Inference) -> None:
    """Raises NumericalTrouble when scores of the replicates that are finished are not finite, by their checks."""
    lost = [check for check in combined(facts, "run") if check["check"] == FINITE and check["passed"] is False]
    if lost:
        raise NumericalTrouble(f"scores are not finite: {lost[0]['detail']}", _mend(inference))


def _mend(inference: Inference) -> str:
    keys = dict(inference)
    rates = [f"inference.{key} (now {keys[key]})" for key in RATES if key in keys]
    return f"lower {' or '.join(rates)}" if rates else "check the model's scales"
