"""Length of a run that has a cost as its budget: a few steps are taken, and their cost is counted.

    steps = t + (limit − cost(t)) / cost of a step,   the least over the limits

A burn-in is a share of the steps.  A warm-up is rehearsed until it takes its share of the cost, and
the steps of a method that adapts are given to spare: the budget ends the run.  Draws are thinned to
a number that fits memory, and evaluations are spaced geometrically in the cost.  Draws of what a
method has fitted take half of a limit at most.  Keys that the user has set stay.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from components.errors import DataUnavailableError, NumericalError
from components.metrics.names import COST_PREFIX
from runner.arena.suite import Suite
from runner.catalogue.parts import component_defaults
from runner.catalogue.settings import GEOMETRIC
from runner.catalogue.words import explicit_keys
from runner.compose.compose import compose
from runner.errors import RunnerError
from runner.record.lines import by_replicate, readable_lines
from runner.terminal.printer import suppress_output

if TYPE_CHECKING:
    from runner.compose.job import Job

# Steps between the two evaluations of a probe; a method that adapts in a warm-up has both probes.
PROBES = (20, 100)
WARM_UP_KEYS = ("warmup", "burn_in")
NO_COST = 1e-12  # a cost of less a step is none
TRIES = 6  # rehearsals of a warm-up
SHORTENED = 0.9  # of the steps that a rehearsal reached: a shorter warm-up may search for less
CHEAP = 0.5  # of its share of the cost: a warm-up that takes less is lengthened
SPARE = 8  # times the steps of a probe, of a method whose steps cost less once it has adapted

POSTERIOR = 0.5  # most of a limit that draws of a fitted posterior take

Limits = Mapping[str, float]  # kind of cost -> most of it
Costs = Mapping[str, tuple[float, float]]  # kind -> at the first and at the last evaluation


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
            keys = component_defaults("inference", compose(overrides).cfg.inference.name)
            job = _prepare(suite, overrides, explicit, keys, folder, PROBES[0])
        except (RunnerError, DataUnavailableError):
            return []
        if "steps" in explicit or job.inference.max_useful_steps is not None:
            return _budget(limits)
        costs = _probe(job, limits)
        if fewer := _reduce_draws(costs, limits, keys, explicit):
            return fewer + find_length(suite, limits, [*overrides, *fewer])
        steps = _measure(suite, limits, overrides, explicit, keys, costs)
        if steps is None:
            return []
        lengths = _choose_lengths(suite, keys, explicit, steps)
        if "inference.warmup" in lengths:
            warm_up = _fit_warm_up(suite, limits, overrides, lengths["inference.warmup"])
            lengths |= {"steps": SPARE * steps, "inference.warmup": warm_up}
    return _to_words(lengths) + _budget(limits)


def _measure(
    suite: Suite,
    limits: Limits,
    overrides: list[str],
    explicit: set[str],
    keys: Mapping[str, Any],
    costs: Costs | None,
) -> int | None:
    """Steps by the costs of a probe, or of a longer one if the method adapts; None: no cost is
    counted."""
    if costs is None:  # it fails early: a run as long as the probe shows that
        return 2 * PROBES[0]
    steps = count_steps(costs, limits, PROBES[0])
    if steps is None or "warmup" not in keys or steps < 2 * PROBES[1]:
        return steps
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        job = _prepare(suite, overrides, explicit, keys, folder, PROBES[1])
        costs = _probe(job, limits)
    return steps if costs is None else count_steps(costs, limits, PROBES[1])


def _reduce_draws(
    costs: Costs | None, limits: Limits, keys: Mapping[str, Any], explicit: set[str]
) -> list[str]:
    """Override with fewer draws of what a method has fitted, if they would cost more than their share
    of a limit."""
    if not costs or "draws" not in keys or "inference.draws" in explicit:
        return []
    # what the first and the last evaluation have in common is the cost of the draws
    shares = [(2 * a - b) / limits[kind] for kind, (a, b) in costs.items() if kind in limits]
    share = max(shares, default=0.0)
    draws = int(keys["draws"] * POSTERIOR / max(share, POSTERIOR))
    return [f"inference.draws={draws}"] if share > POSTERIOR else []


def _fit_warm_up(suite: Suite, limits: Limits, overrides: list[str], warm_up: int) -> int:
    """Steps of a warm-up that spends its share of the limits, or a little less."""
    share = {kind: suite.warm_up * limit for kind, limit in limits.items()}
    for _ in range(TRIES):
        if warm_up < 2:
            break
        reached, spent = _rehearse_warm_up(overrides, share, warm_up)
        if reached <= warm_up:
            warm_up = int(SHORTENED * min(reached, warm_up))
        elif spent < CHEAP:
            warm_up = int(warm_up / max(spent, CHEAP / 4))
        else:
            break
    return warm_up


def _rehearse_warm_up(overrides: list[str], limits: Limits, warm_up: int) -> tuple[int, float]:
    """Steps that a replicate takes within limits, up to the second after its warm-up, and the share
    of the limits that they cost; a failure is left to the run itself."""
    from runner.compose.job import prepare
    from runner.execution.execute import rehearse

    short = ["replicates=1", "tracking=false", "record_every=1000", "checkpoint_every=1000000"]
    lengths = [f"steps={warm_up + 2}", "eval_every=null", f"inference.warmup={warm_up}"]
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        words = [*overrides, *short, *lengths, *_budget(limits), f"output_dir={folder}"]
        try:
            record = rehearse(prepare(compose(words)))
            lines = list(readable_lines(record))
        except (NumericalError, RunnerError):
            return warm_up + 2, 1.0
        costs = {kind: last for kind, (_, last) in read_costs(record).items()}
    spent = max((costs.get(kind, 0.0) / limit for kind, limit in limits.items()), default=1.0)
    return (int(lines[-1]["step"]) if lines else warm_up + 2), spent


def count_steps(costs: Costs, limits: Limits, probed: int) -> int | None:
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
    from runner.compose.job import prepare

    short = ["replicates=1", "tracking=false", f"output_dir={folder}", "record_every=1000"]
    steps = [] if "steps" in explicit else [f"steps={2 * probed}"]
    lengths = _choose_lengths(suite, keys, {*explicit, "steps", "eval_every"}, 2 * probed)
    words = [*overrides, *short, *steps, f"eval_every={probed}", *_to_words(lengths)]
    return prepare(compose(words))


def _choose_lengths(
    suite: Suite, keys: Mapping[str, Any], explicit: set[str], steps: int
) -> dict[str, Any]:
    """Values for this many steps, of the keys that the user has not set."""
    warm_up = int(suite.warm_up * steps)
    values: dict[str, Any] = {"steps": steps, "eval_every": GEOMETRIC}
    values |= {f"inference.{key}": warm_up for key in WARM_UP_KEYS if key in keys}
    if "thinning" in keys:
        fitting = math.ceil((steps - warm_up) / suite.draws)
        values["inference.thinning"] = max(int(keys["thinning"]), fitting)
    return {key: value for key, value in values.items() if key not in explicit}


def _to_words(values: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in values.items()]


def _budget(limits: Limits) -> list[str]:
    """The overrides that end a run at its budget."""
    return [f"budget.{kind}={limit:g}" for kind, limit in limits.items()]


def _probe(job: Job, limits: Limits) -> Costs | None:
    """Costs of a probe at its two evaluations, by kind; None: it failed, or spent the limits before
    its first step."""
    from runner.execution.execute import rehearse

    try:
        return read_costs(rehearse(job, limits))
    except (NumericalError, RunnerError):
        return None


def read_costs(folder: Path) -> Costs:
    """Costs of a record at its first and its last evaluation, by kind."""
    costs: dict[str, list[float]] = {}
    for line in readable_lines(folder):
        for metric in line["metrics"] if line["phase"] != "train" else ():
            if metric.startswith(COST_PREFIX):
                kind = metric.removeprefix(COST_PREFIX)
                costs.setdefault(kind, []).extend(v for _, v in by_replicate(line, metric))
    return {kind: (values[0], values[-1]) for kind, values in costs.items()}
