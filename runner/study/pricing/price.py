"""Predicted cost ("price") of a run: CPU seconds, peak memory and disk, from records of equal runs
or of miniatures of the run.

    cpu = once + P · (set_up + training(n) + E · evaluation + S · save + final)

P passes (sequential replicates, or one for all together) of n units each: steps times replicates
computed together.  Each phase is modelled by a line a + b n through the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.catalogue.settings import EVALUATIONS, GEOMETRIC, Values
from runner.record.facts import Facts, read, read_config
from runner.record.usage import MB, MIB, folder_bytes

BY_PASS = ("set_up", "training", "evaluations", "saving", "final")  # phases of each replicate
COPIES = 4.0  # bytes of memory per additional byte in a record
GROWTH = 0.2  # smallest relative growth of a phase that is not noise
REPEATED = ("outcomes", "predictions")  # folders with files of each replicate
# factors by which the CPU time of a run may differ from its price
RECORD_SPREAD = 1.2
PROBE_SPREAD = 1.5
ROUGH_SPREAD = 3.0


@dataclass(frozen=True)
class Price:
    """Predicted cost of a run, or the reason why it is unknown (``error``)."""

    cpu: float = 0.0  # seconds
    mib: float | None = None  # peak memory of its process
    megabytes: float | None = None  # disk
    source: str = ""  # record | probe | rough
    spread: float = 1.0  # cpu / spread to cpu · spread
    note: str = ""
    error: str = ""

    def wall(self, config: Values) -> float:
        """Wall-clock seconds, if each thread of the run has a core."""
        return self.cpu / max(1, int(config.get("threads") or 1))


Prices = dict[str, Price]  # by signature of a run


@dataclass(frozen=True)
class MeasuredRun:
    """A run with scores and its measured cost."""

    folder: Path
    config: Values
    facts: Facts

    @classmethod
    def read(cls, folder: Path) -> MeasuredRun | None:
        """Read the run of a record; None if the record lacks a part of the cost.

        Raises:
            ConfigError: the config is damaged.
        """
        facts = read(folder)
        if not facts or not facts["finished"]:
            return None
        passes = 1 if facts["vectorised"] else int(facts["replicates"])
        if facts["usage"].get("passes") != passes:
            return None
        return cls(folder, read_config(folder), facts)

    @property
    def usage(self) -> dict[str, float]:
        """CPU seconds by phase, and memory."""
        return self.facts["usage"]  # type: ignore[no-any-return]

    @property
    def once(self) -> float:
        """CPU seconds that do not depend on the number of replicates."""
        return self.usage["cpu_seconds"] - sum(self.usage[phase] for phase in BY_PASS)

    @property
    def bytes_each(self) -> float:
        """Bytes per pass."""
        lines = sum(path.stat().st_size for path in self.folder.glob("metrics.jsonl"))
        added = lines + sum(folder_bytes(self.folder / name) for name in REPEATED)
        return added / self.usage["passes"]

    @property
    def bytes_once(self) -> float:
        """Bytes that do not depend on the number of passes."""
        return folder_bytes(self.folder) - self.bytes_each * self.usage["passes"]

    def units(self, config: Values) -> int:
        """Units per pass of a run with the given config."""
        together = int(config["replicates"]) if self.facts["vectorised"] else 1
        return together * int(config["steps"] or 1)

    def each(self, phase: str) -> float:
        """Seconds of a phase per pass, evaluation or checkpoint."""
        return self.usage[phase] / self.usage["passes"] / count(phase, self.config)


def count(phase: str, config: Values) -> int:
    """Number of intermediate evaluations or checkpoints of a replicate; at least 1."""
    keys = {"evaluations": "eval_every", "saving": "checkpoint_every"}
    every = config.get(keys.get(phase, "")) or 0
    if every == GEOMETRIC:
        return EVALUATIONS - 1
    every = int(every)
    steps = int(config["steps"] or 1)
    if not every:
        return 1
    return max(1, (steps - 1) // every if phase == "evaluations" else -(-steps // every))


def extrapolate(points: Sequence[tuple[float, float]], x: float, growth: float = 0.0) -> float:
    """Value at x of the line through the first and last points; constant if the relative growth of
    y is less than ``growth``.
    """
    (u, first_value), (v, y) = points[0], points[-1]
    return (
        y if u == v or y - first_value <= growth * y else y + (y - first_value) / (v - u) * (x - v)
    )


def price_run(config: Values, runs: Sequence[MeasuredRun], **facts: Any) -> Price:
    """Price of a run from an equal run, or from miniatures in ascending size; ``facts`` are further
    fields of the price.

    The excess of the first miniature over the lines through the others is a cost per process."""
    first = runs[0]
    last = runs[-1]
    size = last.units(config)

    def at(phase: str, x: float) -> float:
        is_training = phase == "training"
        chosen = runs[1:] or runs if is_training else runs[-2:]
        points = [(run.units(run.config), run.each(phase)) for run in chosen]
        if not is_training:
            return extrapolate(points, x, GROWTH)
        last_size, seconds = points[-1]
        in_proportion = seconds * x / last_size
        if seconds <= points[0][1]:
            return in_proportion
        # the line has a nonnegative intercept
        return min(extrapolate(points, x), in_proportion)

    passes = 1 if last.facts["vectorised"] else int(config["replicates"])
    cold = sum(max(0.0, first.each(p) - at(p, first.units(first.config))) for p in BY_PASS)
    by_pass = sum(count(phase, config) * at(phase, size) for phase in BY_PASS)

    def disk(each: Callable[[MeasuredRun], float]) -> float:
        sizes = [(run.units(run.config), each(run)) for run in runs[-2:]]
        return max(sizes[-1][1], extrapolate(sizes, size, GROWTH))

    once = disk(lambda run: run.bytes_once)
    return Price(
        cpu=first.once + cold + passes * by_pass,
        mib=last.usage["peak_mib"] + COPIES * (once - last.bytes_once) / MIB,
        megabytes=(once + passes * disk(lambda run: run.bytes_each)) / MB,
        **facts,
    )
