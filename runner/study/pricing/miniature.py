"""A run in miniature: the same components, data and evaluation, and few steps or few replicates.

Keys that count steps shrink in proportion, so that each part of a run has its share of the steps:

    burn_in' = burn_in · n / N,   thinning' = min(thinning, (n − burn_in') / 4)

A run without steps to save (N = 1, or an attacker of whole series) shrinks in the replicates that
are computed together, or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from components.contracts.requirements import LEFT_OUT, THINNING
from runner.compose.settings import GEOMETRIC

if TYPE_CHECKING:
    from runner.compose.config import Job

FEWEST_STEPS = 8  # of a miniature
FEW_REPLICATES = 4  # computed together: they are not shortened
DRAWS = 4  # draws of a chain that a miniature keeps, if it can: ESS and R̂ need them
STEP_COUNTS = ("undefended_steps", "prior_steps")  # parts of the training, in steps
STEP_LIST = "at"  # steps after which something is measured
EVERY = "every"  # steps from one kept state to the next, of methods with a burn-in

Keys = Mapping[str, Any]


def _shrink_keys(keys: Keys, steps: int, total: int) -> dict[str, Any]:
    """Keys of a method for ``steps`` steps in place of ``total``."""
    small = dict(keys)

    def shrink(count: int, least: int) -> int:
        return max(least, round(count * steps / total)) if count else 0

    left_out = 0
    for key in LEFT_OUT:
        if isinstance(keys.get(key), int):
            small[key] = min(shrink(keys[key], 1), steps - min(DRAWS, steps - 1))
            left_out += small[key]
    # ``every`` is the thinning of methods with a burn-in
    thinning = THINNING if THINNING in keys else EVERY
    has_burn_in = any(key in keys for key in LEFT_OUT)
    if isinstance(keys.get(thinning), int) and (thinning == THINNING or has_burn_in):
        small[thinning] = min(keys[thinning], max(1, (steps - left_out) // DRAWS))
    for key in STEP_COUNTS:
        if isinstance(keys.get(key), int):
            small[key] = min(shrink(keys[key], 1), steps - 1)
    if isinstance(keys.get(STEP_LIST), list):
        places: list[int] = []
        for place in keys[STEP_LIST]:
            places.append(max(shrink(place, 1), places[-1] + 1 if places else 0))
        small[STEP_LIST] = [place for place in places if place <= steps]
    return small


def shrink_steps(config: Keys, steps: int) -> dict[str, Any]:
    """Config of a run with fewer steps, and one evaluation on the way if the run has any."""
    total = int(config["steps"])
    every = config.get("eval_every") or total
    is_evaluated = every == GEOMETRIC or int(every) < total
    small = {
        "steps": steps,
        "eval_every": max(1, steps // 2) if is_evaluated else None,
        "budget": None,
        "inference": _shrink_keys(config["inference"], steps, total),
    }
    return dict(config) | small


def choose_axis(job: Job) -> str:
    """What of a run is shortened: steps, replicates that are computed together, or nothing."""
    from components.contracts.attackers import Injection

    if (job.settings.steps or 0) > FEWEST_STEPS and not isinstance(job.attacker, Injection):
        return "steps"
    is_wide = job.is_vectorised and job.settings.replicates > FEW_REPLICATES
    return "replicates" if is_wide else "nothing"


def shrink(job: Job, axis: str, size: int) -> dict[str, Any]:
    """Config of a miniature; ``size``: its steps or its replicates."""
    config = job.config if job.is_vectorised else job.config | {"replicates": 1}
    if axis == "steps":
        return shrink_steps(config, size)
    return config | {"replicates": size} if axis == "replicates" else config
