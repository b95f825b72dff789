"""Costs of earlier runs, from their records in a study's output folder, and how long a study will take:
from records of runs like its own before it starts, from the steps of those under way after.

A run is like another of the same experiment and components (smoke runs are like smoke runs); its
seconds grow with steps times replicates.  It is equal to one whose config differs only in seeds,
and in replicates that come one after the other.  A run under way is judged by its own steps, on the
machine as busy as it is now; one that waits by the records, then by those under way.
"""

from __future__ import annotations

import heapq
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Any

from runner.catalogue.settings import signed_config
from runner.errors import ConfigError
from runner.record.facts import CHOSEN_ROLES
from runner.record.lines import newest_line
from runner.record.summaries import RecordSummary, read_summaries
from runner.study.executor import RunningProcess
from runner.study.pricing.price import RECORD_SPREAD, ROUGH_SPREAD, MeasuredRun, Price, price_run
from runner.study.snapshot import FrozenRun, Snapshot

# keys outside the identity of a run that change its cost
COSTLY_KEYS = ("figures", "keep_predictions")
Kind = tuple[Any, ...]  # features shared by similar runs


def size(config: Mapping[str, Any]) -> float:
    """Steps of all replicates; the replicates of a run without a number of steps."""
    return float(config.get("replicates", 1)) * float(config.get("steps") or 1)


def kind_of_run(run: FrozenRun) -> Kind:
    """Features of a run that similar ones share."""
    roles = [run.config.get(role) for role in CHOSEN_ROLES]
    names = (role["name"] if isinstance(role, dict) else None for role in roles)
    return run.experiment, *names, bool(run.config.get("smoke")), bool(run.config.get("steps"))


def kind_of_record(experiment: str, summary: RecordSummary) -> Kind:
    """``kind_of_run`` of a recorded run."""
    names = (summary.choice.get(role) for role in CHOSEN_ROLES)
    return experiment, *names, summary.smoke, summary.has_steps


def cost_key(config: Mapping[str, Any], data: str) -> str:
    """Identity of runs of equal cost: the signed config without seed and replicates."""
    signed = signed_config(dict(config))
    kept = {k: v for k, v in signed.items() if k not in ("seed", "replicates")}
    costly = {key: config.get(key) for key in COSTLY_KEYS}
    return json.dumps([kept, costly, data], sort_keys=True, default=str)


class StudyRecords:
    """Records of the experiments of some runs that are done, read once."""

    def __init__(self, snapshot: Snapshot, runs: Iterable[FrozenRun]):
        self.rates: defaultdict[Kind, list[float]] = defaultdict(list)  # seconds a unit of size
        self.records: defaultdict[Kind, list[Path]] = defaultdict(list)
        self._measured: dict[Path, MeasuredRun | None] = {}
        for experiment in {run.experiment for run in runs}:
            self._load(snapshot.output_dir / experiment)

    def _load(self, folder: Path) -> None:
        for name, summary in read_summaries(folder).items():
            if summary.state != "done":
                continue
            kind = kind_of_record(folder.name, summary)
            self.records[kind].append(folder / name)
            if summary.rate is not None:
                self.rates[kind].append(summary.rate)

    def add(self, run: FrozenRun, seconds: float) -> None:
        """Adds the time of a run that has ended."""
        self.rates[kind_of_run(run)].append(seconds / size(run.config))

    def seconds(self, run: FrozenRun) -> float | None:
        """Expected time of a run, from similar ones; None without any."""
        rates = self.rates.get(kind_of_run(run))
        return statistics.median(rates) * size(run.config) if rates else None

    def price(self, run: FrozenRun) -> Price | None:
        """Price of a run, the median over equal ones; None without any."""
        key = cost_key(run.config, run.data)
        prices = [
            price_run(run.config, [one], source="record", spread=RECORD_SPREAD)
            for one in map(self._read, self.records.get(kind_of_run(run), []))
            if one is not None
            and cost_key(one.config, one.facts["data"]) == key
            and one.units(one.config) == one.units(run.config)
        ]
        prices.sort(key=lambda price: price.cpu)
        return prices[(len(prices) - 1) // 2] if prices else None

    def rough_price(self, run: FrozenRun) -> Price:
        """Price from the time of similar runs, with other settings."""
        seconds = self.seconds(run)
        if seconds is None:
            return Price(error="no record is like it; leave --no-probe out to measure it")
        note = "from records of the same components with other settings"
        return Price(cpu=seconds, source="rough", spread=ROUGH_SPREAD, note=note)

    def _read(self, folder: Path) -> MeasuredRun | None:
        """A record, read once; None if its config is damaged."""
        if folder not in self._measured:
            self._measured[folder] = None
            with suppress(ConfigError):
                self._measured[folder] = MeasuredRun.read(folder)
        return self._measured[folder]


@dataclass
class Forecast:
    """Remaining work of the given runs of a study, ``jobs`` at a time."""

    snapshot: Snapshot
    runs: InitVar[Sequence[FrozenRun]]
    jobs: int

    def __post_init__(self, runs: Sequence[FrozenRun]) -> None:
        self.waiting = {run.signature: run for run in runs}
        self.records = StudyRecords(self.snapshot, runs)

    def before(self) -> str:
        """Forecast before any run has started."""
        runs = list(self.waiting.values())
        expected = [self.records.seconds(run) for run in runs]
        durations = [seconds for seconds in expected if seconds is not None]
        number = f"{len(runs)} runs" if len(runs) != 1 else "1 run"
        if not durations:
            return f"{number}; how long they take is told after their first steps"
        usual = statistics.mean(durations)
        total = makespan([], [seconds or usual for seconds in expected], self.jobs)
        n_others = len(runs) - len(durations)
        others = f", {n_others} without a record taken to be like the rest" if n_others else ""
        return f"{number}, {words(total)} with {self.jobs} at a time, from records of runs like them{others}"

    def record_end(self, run: FrozenRun) -> None:
        """One run is over; of one that is done the seconds are remembered."""
        self.waiting.pop(run.signature, None)
        facts = self.snapshot.facts(run)
        if facts and facts["state"] == "done" and facts.get("seconds"):
            self.records.add(run, facts["seconds"])

    def _remaining_of_run(self, going: RunningProcess) -> tuple[float, float] | None:
        """Seconds that are left of a run under way, and all that it takes; None: not known yet."""
        config = going.run.config
        total = self.records.seconds(going.run) or 0.0
        remaining = max(0.0, total - (time.monotonic() - going.started))
        progress = newest_line(self.snapshot.folder(going.run))
        steps = config.get("steps")
        if progress is None or not steps or not 0 < progress["step"] <= steps:
            return (remaining, total) if total else None
        is_one_pass = (self.snapshot.facts(going.run) or {}).get("vectorised")
        passes = 1 if is_one_pass else config.get("replicates", 1)
        # without the last evaluation, which records include
        each = progress["time"] * steps / progress["step"]
        left = each * (passes - progress["replicate"]) - progress["time"]
        return max(left, remaining), max(each * passes, total)

    def remaining_seconds(self, going: Iterable[RunningProcess]) -> float | None:
        """Seconds until all is done; None: nothing is known yet."""
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
    """Seconds until the last is done, where each that waits takes the place of the first that
    ends."""
    busy = [*now]
    busy += [0.0] * (jobs - len(busy))
    heapq.heapify(busy)
    for seconds in waiting:
        heapq.heapreplace(busy, busy[0] + seconds)
    return max(busy)


def words(seconds: float) -> str:
    """About how long, in the unit that one would say it in."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {seconds / 60:.0f} min" if seconds < 90 * 60 else f"about {seconds / 3600:.1f} h"
