"""Costs of earlier runs from their records, and forecasts of the time of a study.

Before the start, the forecast uses records of similar runs; afterwards, the steps of active runs.

A run is similar to another of the same experiment and components (smoke runs to smoke runs); its
seconds grow with steps times replicates.  Equal runs differ only in seeds and in the number of
sequential replicates.  The time of an active run is extrapolated from its own steps under the
current load; the time of a waiting run from records, then from active runs.
"""

from __future__ import annotations

import heapq
import json
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Any

from runner.catalogue.settings import Values, signed_config
from runner.errors import ConfigError
from runner.record.facts import CHOSEN_ROLES, list_folder, read
from runner.record.lines import newest_line
from runner.study.executor import RunningProcess
from runner.study.pricing.price import RECORD_SPREAD, ROUGH_SPREAD, MeasuredRun, Price, price_run
from runner.study.snapshot import FrozenRun, Snapshot

# keys that change the cost of a run but not its identity
COSTLY_KEYS = ("figures", "keep_predictions")
STEPS = re.compile(r"^steps: (\d+)$", re.MULTILINE)  # YAML takes longer to parse
Kind = tuple[Any, ...]  # features shared by similar runs


def size(config: Values) -> float:
    """Steps of all replicates; the number of replicates if the steps are unknown."""
    return float(config.get("replicates", 1)) * float(config.get("steps") or 1)


def kind_of_run(run: FrozenRun) -> Kind:
    """Features shared by similar runs."""
    roles = [run.config.get(role) for role in CHOSEN_ROLES]
    names = (role["name"] if isinstance(role, dict) else None for role in roles)
    return run.experiment, *names, bool(run.config.get("smoke")), bool(run.config.get("steps"))


def cost_key(config: Values, data: str) -> str:
    """Identity of runs of equal cost: the signed config without its seed and replicates."""
    signed = signed_config(dict(config))
    kept = {k: v for k, v in signed.items() if k not in ("seed", "replicates")}
    costly = {key: config.get(key) for key in COSTLY_KEYS}
    return json.dumps([kept, costly, data], sort_keys=True, default=str)


class StudyRecords:
    """Records of finished runs of the given experiments, read once."""

    def __init__(self, snapshot: Snapshot, runs: Iterable[FrozenRun]):
        self.rates: defaultdict[Kind, list[float]] = defaultdict(list)  # seconds per unit of size
        self.records: defaultdict[Kind, list[Path]] = defaultdict(list)
        self._measured: dict[Path, MeasuredRun | None] = {}
        for experiment in {run.experiment for run in runs}:
            self._load(snapshot.output_dir / experiment)

    def _load(self, experiment: Path) -> None:
        """Read the finished runs of an experiment; damaged records are skipped."""
        for folder in list_folder(experiment):
            facts = read(folder)
            if not facts or facts["state"] != "done":
                continue
            with suppress(OSError, ValueError, KeyError, ZeroDivisionError):
                match = STEPS.search((folder / "config.yaml").read_text(encoding="utf-8"))
                names = (facts["choice"].get(role) for role in CHOSEN_ROLES)
                kind = experiment.name, *names, facts["smoke"], match is not None
                self.records[kind].append(folder)
                steps = match and int(match[1])
                rate = facts["seconds"] / size({"replicates": facts["replicates"], "steps": steps})
                if rate and not facts.get("taken_over"):
                    self.rates[kind].append(rate)

    def add(self, run: FrozenRun, seconds: float) -> None:
        """Add the time of a run that has ended."""
        self.rates[kind_of_run(run)].append(seconds / size(run.config))

    def seconds(self, run: FrozenRun) -> float | None:
        """Expected time of a run from similar ones, or None."""
        rates = self.rates.get(kind_of_run(run))
        return statistics.median(rates) * size(run.config) if rates else None

    def price(self, run: FrozenRun) -> Price | None:
        """Price of a run, the median over equal ones, or None."""
        key = cost_key(run.config, run.data)
        prices = [
            price_run(run.config, [record], source="record", spread=RECORD_SPREAD)
            for record in map(self._read, self.records.get(kind_of_run(run), []))
            if record is not None
            and cost_key(record.config, record.facts["data"]) == key
            and record.units(record.config) == record.units(run.config)
        ]
        prices.sort(key=lambda price: price.cpu)
        return prices[(len(prices) - 1) // 2] if prices else None

    def rough_price(self, run: FrozenRun) -> Price:
        """Price from the time of similar runs with other settings."""
        seconds = self.seconds(run)
        if seconds is None:
            return Price(error="no record of a similar run; remove --no-probe to measure it")
        note = "from records of the same components with other settings"
        return Price(cpu=seconds, source="rough", spread=ROUGH_SPREAD, note=note)

    def _read(self, folder: Path) -> MeasuredRun | None:
        """Read a record, once; None if its config is damaged."""
        if folder not in self._measured:
            self._measured[folder] = None
            with suppress(ConfigError):
                self._measured[folder] = MeasuredRun.read(folder)
        return self._measured[folder]


@dataclass
class Forecast:
    """Remaining time of the given runs of a study, with ``jobs`` in parallel."""

    snapshot: Snapshot
    runs: InitVar[Sequence[FrozenRun]]
    jobs: int

    def __post_init__(self, runs: Sequence[FrozenRun]) -> None:
        self.waiting = {run.signature: run for run in runs}
        self.records = StudyRecords(self.snapshot, runs)

    def before(self) -> str:
        """Text of the forecast before any run has started."""
        number = f"{len(self.waiting)} runs" if len(self.waiting) != 1 else "1 run"
        total = self.remaining_seconds([])
        if total is None:
            return f"{number}; time estimate after the first steps"
        n_others = sum(self.records.seconds(run) is None for run in self.waiting.values())
        others = f", assuming that the {n_others} without a record take as long" if n_others else ""
        time_left = f"about {format_seconds(total)} with {self.jobs} in parallel"
        return f"{number}, {time_left}, from records of similar runs{others}"

    def record_end(self, run: FrozenRun) -> None:
        """Record the end of a run, and its time if it is done."""
        self.waiting.pop(run.signature, None)
        facts = self.snapshot.facts(run)
        if facts and facts["state"] == "done" and facts.get("seconds"):
            self.records.add(run, facts["seconds"])

    def _remaining_of_run(self, going: RunningProcess) -> tuple[float, float] | None:
        """Remaining and total seconds of an active run, or None if not known yet."""
        config = going.run.config
        total = self.records.seconds(going.run) or 0.0
        remaining = max(0.0, total - (time.monotonic() - going.started))
        progress = newest_line(self.snapshot.folder(going.run))
        steps = config.get("steps")
        if progress is None or not steps or not 0 < progress["step"] <= steps:
            return (remaining, total) if total else None
        is_one_pass = (self.snapshot.facts(going.run) or {}).get("vectorised")
        passes = 1 if is_one_pass else config.get("replicates", 1)
        # without the last evaluation, which records do include
        each = progress["time"] * steps / progress["step"]
        seconds_left = each * (passes - progress["replicate"]) - progress["time"]
        return max(seconds_left, remaining), max(each * passes, total)

    def remaining_seconds(self, going: Iterable[RunningProcess]) -> float | None:
        """Seconds until all runs are done, or None if not known yet."""
        under_way = {job.run.signature: self._remaining_of_run(job) for job in going}
        estimates = [
            self.records.seconds(run)
            for signature, run in self.waiting.items()
            if signature not in under_way
        ]
        durations = [
            *(seconds for seconds in estimates if seconds is not None),
            *(times[1] for times in under_way.values() if times is not None),
        ]
        if not durations:
            return None
        usual = statistics.mean(durations)
        now = [usual if times is None else times[0] for times in under_way.values()]
        return makespan(now, [seconds or usual for seconds in estimates], self.jobs)


def makespan(now: Iterable[float], waiting: Iterable[float], jobs: int) -> float:
    """Seconds until the last run ends if each waiting run starts when the next active one ends."""
    busy = [*now]
    busy += [0.0] * (jobs - len(busy))
    heapq.heapify(busy)
    for seconds in waiting:
        heapq.heapreplace(busy, busy[0] + seconds)
    return max(busy)


def format_seconds(seconds: float) -> str:
    """Format an approximate time with a suitable unit."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
