"""``python -m runner.study.pricing.probe <snapshot> <run> <seconds>``: execute miniatures of a run
sequentially in one process, each with an ordinary record.

A miniature has the same components, data and evaluation, but few steps or few replicates.  Keys
that count steps shrink in proportion, so that each part of a run keeps its share of the steps:

    burn_in' = burn_in · n / N,   thinning' = min(thinning, (n − burn_in') / 4)

If the number of steps cannot be reduced (N = 1, or an attacker of whole series), the number of
replicates computed together is reduced if possible.  A small first miniature absorbs imports,
compilation and caches; two lengths n₁ < n₂ follow, chosen so that the training of the last one
takes a share of ``seconds``.  The process exits when it exceeds its limit of CPU seconds.
"""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING

from components.contracts.requirements import LEFT_OUT, THINNING
from runner.catalogue.settings import GEOMETRIC, Values
from runner.errors import first_line

if TYPE_CHECKING:
    from runner.compose.job import Job


FEWEST_STEPS = 8  # smallest number of steps of a miniature
FEW_REPLICATES = 4  # up to this number, replicates computed together are not reduced
DRAWS = 4  # kept draws per chain of a miniature, if possible, for ESS and R̂
STEP_COUNTS = ("undefended_steps", "prior_steps")  # lengths of training phases in steps
STEP_LIST = "at"  # key with the steps of measurements
EVERY = "every"  # steps between kept states, for methods with a burn-in


def _thinning_key(keys: Values) -> str | None:
    """Key of the number of steps between kept states, or None."""
    if isinstance(keys.get(THINNING), int):
        return THINNING
    has_burn_in = any(key in keys for key in LEFT_OUT)
    return EVERY if has_burn_in and isinstance(keys.get(EVERY), int) else None


def _shrink_keys(keys: Values, steps: int, total: int) -> Values:
    """Keys of a method for ``steps`` steps instead of ``total``."""
    small = dict(keys)

    def shrink(count: int, least: int) -> int:
        return max(least, round(count * steps / total)) if count else 0

    left_out = 0
    for key in LEFT_OUT:
        if isinstance(keys.get(key), int):
            small[key] = min(shrink(keys[key], 1), steps - min(DRAWS, steps - 1))
            left_out += small[key]
    if (thinning := _thinning_key(keys)) is not None:
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


def shrink_steps(config: Values, steps: int) -> Values:
    """Config of a run with fewer steps, and one intermediate evaluation if the run has any."""
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
    """Reduced quantity of a run: steps, replicates computed together, or nothing."""
    from components.contracts.attackers import Injection

    if (job.settings.steps or 0) > FEWEST_STEPS and not isinstance(job.attacker, Injection):
        return "steps"
    is_wide = job.is_vectorised and job.settings.replicates > FEW_REPLICATES
    return "replicates" if is_wide else "nothing"


def shrink(job: Job, axis: str, size: int) -> Values:
    """Config of a miniature; ``size`` is its number of steps or replicates."""
    config = job.config if job.is_vectorised else job.config | {"replicates": 1}
    if axis == "steps":
        return shrink_steps(config, size)
    return config | {"replicates": size} if axis == "replicates" else config


TRAINING_SHARE = 0.4  # share of a probe's seconds for training of the longest miniature
WHOLE_SHARE = 0.8  # share of a probe's seconds below which training is not reduced
MIDDLE = 4  # ratio of training times of the longest and the middle miniature
LEAP = 32  # largest ratio of the steps of the second and the first miniature
NO_TIME = 1e-7  # seconds
COLD_SECONDS = 30  # additional CPU seconds of a probe for imports and compilation
LIMIT_FACTOR = 6  # ratio of the limit of CPU seconds to a probe's seconds


def limit(seconds: float) -> int:
    """Limit of CPU seconds for a probe."""
    return COLD_SECONDS + round(LIMIT_FACTOR * seconds)


def next_size(sizes: list[int], total: int, usage: dict[str, float], seconds: float) -> int:
    """Size of the next miniature, or 0 if no more are needed; ``usage`` belongs to the last one."""
    size = sizes[-1]
    rest = usage["cpu_seconds"] - usage["start"] - usage["training"]
    if size == total or len(sizes) == 3 or (len(sizes) == 2 and rest > seconds):
        return 0
    each = max(usage["training"] / size, NO_TIME)
    if total * each < WHOLE_SHARE * seconds and (len(sizes) == 2 or total <= LEAP * size):
        return total
    target = TRAINING_SHARE * seconds
    if len(sizes) == 2:
        return 0 if usage["training"] > target else min(total, max(int(target / each), 2 * size))
    return min(total, LEAP * size, max(int(target / MIDDLE / each), 2 * size))


def _run(config: Values, experiment: str) -> dict[str, float]:
    """Execute a miniature; return its usage."""
    from omegaconf import OmegaConf

    from components.errors import NumericalError
    from runner.compose.compose import Composed
    from runner.compose.job import prepare
    from runner.execution.execute import Run

    run = Run(prepare(Composed(OmegaConf.create(config), experiment)))
    try:
        run.go(signals=False)
    except NumericalError:  # scores after few steps need not be finite
        if not run.record.facts["finished"]:
            raise
    usage: dict[str, float] = run.record.facts["usage"]
    return usage


def main(argv: list[str]) -> int:
    """Measure a run; an error is printed in one line."""
    from runner.execution.memory import keep_freed_memory
    from runner.record.usage import claim_process
    from runner.study.one_run import load_job
    from runner.terminal.printer import complain

    claim_process()
    seconds = float(argv[2])
    resource.setrlimit(resource.RLIMIT_CPU, (limit(seconds), resource.RLIM_INFINITY))
    try:
        study, run, _, job = load_job(argv)
        keep_freed_memory()
        axis = choose_axis(job)
        total = getattr(job.settings, axis) if axis != "nothing" else 1
        sizes = [{"steps": FEWEST_STEPS, "replicates": total // 8}.get(axis, total) or 1]
        folder = study.output_dir / run.signature
        while sizes[-1]:
            config = shrink(job, axis, sizes[-1])
            usage = _run(config | {"output_dir": str(folder)}, run.experiment)
            sizes.append(next_size(sizes, total, usage, seconds))
    except Exception as error:
        line = first_line(error)
        complain(line)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
