"""How long a study will take: from records of runs like its own before it starts, from the steps of
those under way after.

What is going is judged by its own steps, on the machine as busy as it is now; what waits by the
records, then by what is going."""

from __future__ import annotations

import heapq
import statistics
import time
from collections.abc import Iterable, Sequence

from runner.record.lines import newest_line
from runner.study.executor import RunningProcess
from runner.study.pricing.study_records import StudyRecords
from runner.study.snapshot import FrozenRun, Snapshot


class Forecast:
    """Remaining work of the given runs of a study, ``jobs`` at a time."""

    def __init__(self, snapshot: Snapshot, runs: Sequence[FrozenRun], jobs: int):
        self.snapshot = snapshot
        self.jobs = jobs
        self.waiting = {run.signature: run for run in runs}
        self.records = StudyRecords(snapshot, runs)

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
