"""A run whose objective is no longer finite has diverged: it is stopped while its last checkpoint is still good."""

from __future__ import annotations

import math
from typing import Any

from components.trouble import NumericalTrouble
from runner.compose.config import Job

WATCHED = ("elbo", "loss", "log_likelihood", "log_joint")  # information that must stay finite
RATES = ("lr", "learning_rate", "step_size", "epsilon")  # keys to lower when it does not


def check_finite(info: dict[str, Any], job: Job) -> None:
    """Raises NumericalTrouble, naming the key to lower, when a watched value is not finite."""
    for name in WATCHED:
        value = info.get(name)
        if value is None:
            continue
        if not all(math.isfinite(v) for v in (value if isinstance(value, list) else [value])):
            rate = next((r for r in RATES if hasattr(job.inference, r)), None)
            mend = (
                f"lower inference.{rate} (now {getattr(job.inference, rate)})" if rate else "check the model's scales"
            )
            raise NumericalTrouble(f"{name} is {value}", mend)
