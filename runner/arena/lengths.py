"""Length of a run with a cost budget, computed from the counted cost of a few steps.

    steps = t + (limit − cost(t)) / cost of a step,   the minimum over the limits

A burn-in is a share of the steps.  The length of a warm-up is adjusted in trial runs until it takes
its share of the cost.  A method that adapts gets more steps than needed, because the budget ends
the run.  Draws are thinned to a number that fits memory, and evaluations are spaced geometrically
in the cost.  Draws from a fitted posterior use at most half of a limit.  Keys that the user has set
are kept.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from components import registry
from components.errors import ConfigMismatchError, DataUnavailableError, NumericalError
from components.metrics.names import COST_PREFIX
from runner.arena.suite import Suite
from runner.catalogue.settings import GEOMETRIC
from runner.catalogue.words import explicit_keys
from runner.compose.compose import compose
from runner.compose.expand import component_defaults
from runner.disk.scratch import scratch_folder
from runner.errors import RunnerError
from runner.record.lines import Line, readable_lines
from runner.terminal.printer import suppress_output

# Steps between the two evaluations of a probe; a method that adapts in a warm-up has both probes.
PROBES = (20, 100)
WARM_UP_KEYS = ("warmup", "burn_in")
NO_COST = 1e-12  # a smaller cost per step counts as zero
TRIES = 6  # rehearsals of a warm-up
SHORTENED = 0.9  # of the steps that a rehearsal reached: a shorter warm-up may search for less
CHEAP = 0.5  # of its share of the cost: a warm-up that takes less is lengthened
SPARE = 8  # times the steps of a probe, if a method's steps cost less after adaptation

POSTERIOR = 0.5  # most of a limit that draws of a fitted posterior take

Limits = Mapping[str, float]  # kind of cost -> most of it
Costs = Mapping[str, tuple[float, float]]  # kind -> at the first and at the last evaluation

# of a replicate that is run to be measured
SHORT = ["replicates=1", "tracking=false", "record_every=1000"]


def find_length(suite: Suite, limits: Limits, overrides: list[str]) -> list[str]:
    """Overrides that adjust the length of a run to its budget; empty if the run cannot be composed
    (freezing reports the reason) or if none of the costs is counted.
    """
    if not limits:
        return []
    with (
        suppress_output(),
        warnings.catch_warnings(),
        suppress(RunnerError, DataUnavailableError, ConfigMismatchError),
    ):
        warnings.simplefilter("ignore")
        name = compose(overrides).cfg.inference.name
        keys = component_defaults("inference", name)
        length = RunLength(suite, limits, overrides, keys, explicit_keys(overrides))
        if "steps" in length.explicit or registry.get("inference", name).max_useful_steps:
            return budget_words(limits)
        return length.find()
    return []


@dataclass(frozen=True)
class RunLength:
    """Search for the length of a run within limits."""

    suite: Suite
    limits: Limits
    overrides: list[str]
    keys: Mapping[str, Any]  # of the method, with their defaults
    explicit: set[str]  # keys that the user has set

    def find(self) -> list[str]:
        """Overrides of the run."""
        costs = self.probe(PROBES[0])
        if fewer := self.reduce_draws(costs or {}):
            return fewer + find_length(self.suite, self.limits, [*self.overrides, *fewer])
        steps = self.count(costs)
        if steps is None:
            return []
        lengths = self.choose(steps)
        if "inference.warmup" in lengths:
            lengths["inference.warmup"] = self.fit_warm_up(lengths["inference.warmup"])
            lengths["steps"] = SPARE * steps
        return to_words(lengths) + budget_words(self.limits)

    def probe(self, steps: int) -> Costs | None:
        """Costs after ``steps`` and after 2 ``steps``, by kind; None if the run failed or exceeded
        the limits before its first step."""
        values = self.choose(2 * steps) | {"steps": 2 * steps, "eval_every": steps}
        lines = rehearse_replicate([*self.overrides, *to_words(values)], self.limits)
        return read_costs(lines) if lines else None

    def reduce_draws(self, costs: Costs) -> list[str]:
        """Override with fewer draws from the fitted posterior, if they would cost more than their
        share of a limit."""
        if "draws" not in self.keys or "inference.draws" in self.explicit:
            return []
        # the cost of the draws is common to the first and the last evaluation
        limits = self.limits
        shares = [(2 * costs[k][0] - costs[k][1]) / limits[k] for k in limits if k in costs]
        share = max(shares, default=0.0)
        if share <= POSTERIOR:
            return []
        return [f"inference.draws={int(self.keys['draws'] * POSTERIOR / share)}"]

    def count(self, costs: Costs | None) -> int | None:
        """Number of steps, from the costs of the first probe, or of a longer one if the method
        adapts; None if no cost is counted.
        """
        if costs is None:  # it fails early: a run as long as the probe shows that
            return 2 * PROBES[0]
        steps = count_steps(costs, self.limits, PROBES[0])
        if steps is None or "warmup" not in self.keys or steps < 2 * PROBES[1]:
            return steps
        costs = self.probe(PROBES[1])
        return steps if costs is None else count_steps(costs, self.limits, PROBES[1])

    def choose(self, steps: int) -> dict[str, Any]:
        """Values for ``steps`` steps of the keys that the user has not set."""
        warm_up = int(self.suite.warm_up * steps)
        values: dict[str, Any] = {"steps": steps, "eval_every": GEOMETRIC}
        values |= {f"inference.{key}": warm_up for key in WARM_UP_KEYS if key in self.keys}
        if "thinning" in self.keys:
            fitting = math.ceil((steps - warm_up) / self.suite.draws)
            values["inference.thinning"] = max(int(self.keys["thinning"]), fitting)
        return {key: value for key, value in values.items() if key not in self.explicit}

    def fit_warm_up(self, warm_up: int) -> int:
        """Number of warm-up steps that spend at most the warm-up's share of the limits."""
        share = {kind: self.suite.warm_up * limit for kind, limit in self.limits.items()}
        for _ in range(TRIES):
            if warm_up < 2:
                break
            reached, spent = rehearse_warm_up(self.overrides, share, warm_up)
            if reached <= warm_up:
                warm_up = int(SHORTENED * min(reached, warm_up))
            elif spent < CHEAP:
                warm_up = int(warm_up / max(spent, CHEAP / 4))
            else:
                break
        return warm_up


def rehearse_warm_up(overrides: list[str], limits: Limits, warm_up: int) -> tuple[int, float]:
    """Number of steps that a replicate takes within limits, up to the second step after its
    warm-up, and the share of the limits that they cost; failures are ignored here and reported by
    the run.
    """
    lengths = [f"steps={warm_up + 2}", "eval_every=null", f"inference.warmup={warm_up}"]
    lengths += [*budget_words(limits), "checkpoint_every=1000000"]
    lines = rehearse_replicate([*overrides, *lengths])
    if not lines:
        return warm_up + 2, 1.0
    costs = read_costs(lines)
    spent = max((costs[kind][1] / limits[kind] for kind in limits if kind in costs), default=0.0)
    return int(lines[-1]["step"]), spent


def rehearse_replicate(overrides: list[str], start_limits: Limits | None = None) -> list[Line]:
    """Recorded lines of a replicate; empty if it failed."""
    from runner.compose.job import prepare
    from runner.execution.execute import rehearse

    with scratch_folder() as folder:
        job = prepare(compose([*overrides, *SHORT, f"output_dir={folder}"]))
        try:
            return readable_lines(rehearse(job, start_limits))
        except (NumericalError, RunnerError, ConfigMismatchError):  # the run reports it
            return []


def count_steps(costs: Costs, limits: Limits, probed: int) -> int | None:
    """Number of steps within all limits, from the costs of ``probed`` and 2 ``probed`` steps; None
    if no limited cost was counted.
    """
    steps = []
    for kind, (first, second) in costs.items():
        per_step = (second - first) / probed
        if kind in limits and per_step > NO_COST:
            steps.append(2 * probed + (limits[kind] - second) / per_step)
    return max(1, math.floor(min(steps))) if steps else None


def to_words(values: Mapping[str, Any]) -> list[str]:
    """Convert keys to overrides."""
    return [f"{key}={value}" for key, value in values.items()]


def budget_words(limits: Limits) -> list[str]:
    """Overrides that end a run at its budget."""
    return [f"budget.{kind}={limit:g}" for kind, limit in limits.items()]


def read_costs(lines: list[Line]) -> Costs:
    """Costs of a replicate at its first and its last evaluation, by kind."""
    evaluations = [line["metrics"] for line in lines if line["phase"] != "train"]
    return {
        name.removeprefix(COST_PREFIX): (evaluations[0].get(name, cost), cost)
        for name, cost in evaluations[-1].items()
        if name.startswith(COST_PREFIX)
    }
