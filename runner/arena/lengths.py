"""Length of a run that has a cost as its budget: a few steps are taken, and their cost is counted.

    steps = t + (limit − cost(t)) / cost of a step,   the least over the limits

Warm-up and burn-in are a share of the steps, draws are thinned to a number that fits memory, and a
run is evaluated ten times.  What the user has set stays.  A warm-up is rehearsed: the run is
shortened until its warm-up takes at most half of every limit.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from components.errors import DataUnavailableError, NumericalError
from components.metrics.names import COST_PREFIX
from runner.arena.suite import Suite
from runner.compose.overrides import compose, explicit_keys
from runner.compose.parts import component_defaults
from runner.errors import RunnerError
from runner.record.lines import by_replicate, readable_lines
from runner.terminal.printer import suppress_output

if TYPE_CHECKING:
    from runner.compose.config import Job

# Steps between the two evaluations of a probe; a method that adapts in a warm-up has both probes.
PROBES = (20, 100)
EVALUATIONS = 10  # of a run, so that the first one is at a tenth of its steps
WARM_UP_KEYS = ("warmup", "burn_in")
NO_COST = 1e-12  # a cost of less a step is none
WARM_UP_LIMIT = 0.5  # of every limit, of a warm-up
SHORTENED = 0.9  # of the steps, in one try: a shorter warm-up may also search for less

Limits = Mapping[str, float]  # kind of cost -> most of it


def find_length(suite: Suite, limits: Limits, overrides: list[str]) -> list[str]:
    """Overrides that make a run as long as its budget; nothing if it cannot be composed (freezing
    says why) or if none of the costs is counted."""
    if not limits:
        return []
    explicit = explicit_keys(overrides)
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        suppress_output(),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            keys = component_defaults("inference", compose(overrides)[0].inference.name)
            job = _prepare(suite, overrides, explicit, keys, folder, PROBES[0])
        except (RunnerError, HydraException, OmegaConfBaseException, DataUnavailableError):
            return []
        if "steps" in explicit or job.inference.max_useful_steps is not None:
            return _budget(limits)
        steps = _measure(suite, limits, overrides, explicit, keys, job)
        if steps is not None and "warmup" in keys and "inference.warmup" not in explicit:
            steps = _fit_warm_up(suite, limits, overrides, steps)
    if steps is None:
        return []
    return _overrides(suite, keys, explicit, steps) + _budget(limits)


def _measure(
    suite: Suite,
    limits: Limits,
    overrides: list[str],
    explicit: set[str],
    keys: Mapping[str, Any],
    job: Job,
) -> int | None:
    """Steps that a probe finds, or a longer one if the method adapts; None: no cost is counted."""
    costs = _probe(job)
    if costs is None:  # it fails early: a run as long as the probe shows that
        return 2 * PROBES[0]
    steps = count_steps(costs, limits, PROBES[0])
    if steps is None or "warmup" not in keys or steps < 2 * PROBES[1]:
        return steps
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        costs = _probe(_prepare(suite, overrides, explicit, keys, folder, PROBES[1]))
    return steps if costs is None else count_steps(costs, limits, PROBES[1])


def _fit_warm_up(suite: Suite, limits: Limits, overrides: list[str], steps: int) -> int:
    """The steps, or fewer if their warm-up spends more than its share of the limits."""
    half = _budget({kind: WARM_UP_LIMIT * limit for kind, limit in limits.items()})
    while (warm_up := int(suite.warm_up * steps)) > 1:
        if _rehearse_warm_up([*overrides, *half], warm_up) > warm_up:
            break
        steps = math.floor(SHORTENED * steps)
    return max(1, steps)


def _rehearse_warm_up(overrides: list[str], warm_up: int) -> int:
    """Steps that a replicate takes within its budget, up to the second after its warm-up; a failure
    is left to the run itself."""
    from runner.compose.config import prepare
    from runner.execution.execute import rehearse

    short = ["replicates=1", "tracking=false", "record_every=1000", "checkpoint_every=1000000"]
    lengths = [f"steps={warm_up + 2}", "eval_every=null", f"inference.warmup={warm_up}"]
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        words = [*overrides, *short, *lengths, f"output_dir={folder}"]
        try:
            lines = list(readable_lines(rehearse(prepare(*compose(words)))))
        except (NumericalError, RunnerError):
            return warm_up + 2
    return int(lines[-1]["step"]) if lines else warm_up + 2


def count_steps(
    costs: Mapping[str, tuple[float, float]], limits: Limits, probed: int
) -> int | None:
    """Steps that keep every limit, from the costs of ``probed`` and twice as many steps; None:
    no cost that is limited was counted."""
    steps = []
    for kind, (first, second) in costs.items():
        per_step = (second - first) / probed
        if kind in limits and per_step > NO_COST:
            steps.append(2 * probed + (limits[kind] - second) / per_step)
    return max(1, math.floor(min(steps))) if steps else None


def _prepare(
    suite: Suite,
    overrides: list[str],
    explicit: set[str],
    keys: Mapping[str, Any],
    folder: str,
    probed: int,
) -> Job:
    """The job of a probe: twice ``probed`` steps of one replicate."""
    from runner.compose.config import prepare

    short = ["replicates=1", "tracking=false", f"output_dir={folder}", "record_every=1000"]
    steps = [] if "steps" in explicit else [f"steps={2 * probed}"]
    lengths = _overrides(suite, keys, {*explicit, "steps", "eval_every"}, 2 * probed)
    words = [*overrides, *short, *steps, f"eval_every={probed}", *lengths]
    return prepare(*compose(words))


def _overrides(suite: Suite, keys: Mapping[str, Any], explicit: set[str], steps: int) -> list[str]:
    """Overrides for this many steps, of the method's keys that the user has not set."""
    warm_up = int(suite.warm_up * steps)
    values = {"steps": steps, "eval_every": math.ceil(steps / EVALUATIONS)}
    values |= {f"inference.{key}": warm_up for key in WARM_UP_KEYS if key in keys}
    if "thinning" in keys:
        fitting = math.ceil((steps - warm_up) / suite.draws)
        values["inference.thinning"] = max(int(keys["thinning"]), fitting)
    return [f"{key}={value}" for key, value in values.items() if key not in explicit]


def _budget(limits: Limits) -> list[str]:
    """The overrides that end a run at its budget."""
    return [f"budget.{kind}={limit:g}" for kind, limit in limits.items()]


def _probe(job: Job) -> dict[str, tuple[float, float]] | None:
    """Costs of a probe at its two evaluations, by kind; None: it failed."""
    from runner.execution.execute import rehearse

    try:
        return read_costs(rehearse(job))
    except (NumericalError, RunnerError):
        return None


def read_costs(folder: Path) -> dict[str, tuple[float, float]]:
    """Costs of a record at its first and its last evaluation, by kind."""
    costs: dict[str, list[float]] = {}
    for line in readable_lines(folder):
        for metric in line["metrics"] if line["phase"] != "train" else ():
            if metric.startswith(COST_PREFIX):
                kind = metric.removeprefix(COST_PREFIX)
                costs.setdefault(kind, []).extend(v for _, v in by_replicate(line, metric))
    return {kind: (values[0], values[-1]) for kind, values in costs.items()}
