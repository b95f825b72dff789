"""Price of a run before it runs: CPU seconds, peak memory and disk, from a record or a probe.

    cpu = start + rest + cold + P · (set_up + training(N) + Σ evaluations + saving + final) + files

P passes (replicates one after the other, or one for all together), N steps.  Each part is a line
a + b x through the warm miniatures of a probe; x is the number of steps or, after a burn-in, of
draws, or that of replicates.  ``cold`` is what the first miniature took beyond these lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.record.usage import MB, MIB, PHASES
from runner.study.pricing.miniature import count_draws, shrink_steps
from runner.study.pricing.probe import GROWTH, Probe, Sample

BY_PASS = ("set_up", "training", "evaluations", "saving", "final")  # phases of each replicate
# bytes in memory, at least and at most, for a byte of the draws that a record keeps
COPIES = (2.0, 8.0)
TOUCHED = 0.5  # share of the imported code that a run reads again, about
# factors by which the CPU time of a run may differ from its price
RECORD_SPREAD = 1.2
PROBE_SPREAD = 1.3
LATE_SPREAD = 2.0
ROUGH_SPREAD = 3.0
STEADY = 1.1  # ratio of two costs of a step, by counts, that is no change
COUNTS = ("gradients", "densities", "forwards", "environment_steps")


@dataclass(frozen=True)
class Price:
    """What a run takes, or that it cannot be said (``error``)."""

    cpu: float = 0.0  # seconds
    mib: float | None = None  # peak memory of its process
    megabytes: float | None = None  # disk
    source: str = ""  # record | probe | rough
    spread: float = 1.0  # cpu / spread to cpu · spread
    note: str = ""
    error: str = ""


@dataclass(frozen=True)
class FittedLine:
    """a + b x."""

    a: float
    b: float

    def __call__(self, x: float) -> float:
        return self.a + self.b * x


def fit_line(points: Sequence[tuple[float, float]], growth: float = 0.0) -> FittedLine:
    """Line through the last two points with different x, constant where y grows by less than
    ``growth``, relative to itself; of one point a constant."""
    x, y = points[-1]
    before = next(((u, v) for u, v in reversed(points[:-1]) if u < x), None)
    if before is None or y - before[1] <= growth * y:
        return FittedLine(y, 0.0)
    slope = (y - before[1]) / (x - before[0])
    return FittedLine(y - slope * x, slope)


def fit_training(points: Sequence[tuple[float, float]]) -> FittedLine:
    """Line of the seconds of a training by its steps, which begins at or above zero."""
    line = fit_line(points)
    x, y = points[-1]
    return FittedLine(0.0, y / x) if line.b <= 0.0 or line.a < 0.0 or len(points) == 1 else line


def count_evaluations(every: int | None, total: int) -> list[int]:
    """Steps after which a run is evaluated before its end."""
    return list(range(every, total, every)) if every else []


def _steps_in_budget(probe: Probe, config: Mapping[str, Any]) -> int:
    """Steps of a run, fewer where the cost of a step spends its budget before."""
    last = probe.samples[-1]
    limits = {k: v for k, v in (config.get("budget") or {}).items() if v is not None}
    steps = [float(probe.total)]
    for kind, limit in limits.items():
        if last.costs.get(kind, 0.0) > 0.0:
            steps.append(limit * last.steps / last.costs[kind])
    return max(1, round(min(steps)))


def _changes(probe: Probe) -> float:
    """Ratio of the costs of a step early and late, by counts that no machine changes; 1: they are
    equal, or the run was not shortened."""
    places = [sample.steps for sample in probe.samples]
    if len(places) < 3 or places[-1] >= probe.total:
        return 1.0
    ratios = [1.0]
    for kind in COUNTS:
        counts = [sample.costs.get(kind, 0.0) for sample in probe.samples]
        rates = [
            (counts[i + 1] - counts[i]) / (places[i + 1] - places[i])
            for i in range(2)
            if places[i + 1] > places[i]
        ]
        if len(rates) == 2 and min(rates) > 0.0:
            ratios.append(max(rates) / min(rates))
    return max(ratios)


class Forecaster:
    """Lines through a probe's miniatures, and what they say of the whole run."""

    def __init__(self, probe: Probe, config: Mapping[str, Any]):
        self.probe = probe
        self.config = config
        self.first, *warm = probe.samples
        self.warm: list[Sample] = warm or [self.first]
        self.steps = _steps_in_budget(probe, config) if probe.axis == "steps" else probe.total
        self.is_by_replicates = probe.axis == "replicates"
        self.passes = 1 if probe.vectorised else int(config["replicates"])
        self.evaluations = count_evaluations(config.get("eval_every"), self.steps)

    def _draws(self, sample: Sample, steps: int) -> float:
        """Abscissa of an evaluation of a miniature."""
        if self.is_by_replicates:
            return sample.replicates
        if self.probe.axis == "nothing":
            return 0.0
        small = shrink_steps(dict(self.config), sample.steps, self.probe.total)
        return count_draws(small["inference"], steps)

    def _all_draws(self, steps: int) -> float:
        """Abscissa of an evaluation of the whole run."""
        if self.is_by_replicates:
            return float(self.config["replicates"])
        return count_draws(self.config["inference"], steps) if self.probe.axis == "steps" else 0.0

    def _line(self, phase: str, x: Callable[[Sample], float]) -> FittedLine:
        """Line of a phase; next to a single warm miniature the first one is its other point."""
        samples = self.warm if len(self.warm) > 1 else [self.first, *self.warm]
        return fit_line([(x(s), s.usage[phase]) for s in samples], GROWTH)

    def _evaluations(self) -> FittedLine:
        """Line of the evaluations on the way; costly ones were done once."""
        samples = [s for s in self.warm if s.evaluations] or [self.first]
        places = [self._draws(s, max(1, s.steps // 2)) for s in samples]
        seconds = [s.usage["evaluations"] / max(1, s.evaluations) for s in samples]
        return fit_line(list(zip(places, seconds, strict=True)), GROWTH)

    def _size(self, sample: Sample) -> float:
        return float(sample.replicates if self.is_by_replicates else sample.steps)

    def _saves(self, steps: int) -> int:
        """Checkpoints that so many steps write."""
        every = int(self.config["checkpoint_every"])
        return steps // every + (steps % every > 0)

    def _files(self) -> FittedLine:
        """Line of the figures; of an earlier miniature, where the last one drew none."""
        drawn = [s for s in self.warm if s.figures == self.first.figures] or [self.first]
        points = [(self._draws(s, s.steps), s.usage["files"]) for s in drawn]
        return fit_line(points, GROWTH)

    def cpu(self) -> float:
        """CPU seconds of the run."""
        first = self.first
        last = self.warm[-1]
        files = self._files()
        final = self._line("final", lambda s: self._draws(s, s.steps))
        evaluation = self._evaluations()
        set_up = self._line("set_up", self._size if self.is_by_replicates else lambda s: 0.0)
        points = [(self._size(s), s.usage["training"]) for s in self.warm]
        training = fit_line(points) if self.is_by_replicates else fit_training(points)
        saving = last.usage["saving"] / self._saves(last.steps)

        def phases(size: float, steps: int, end: float, middle: list[float]) -> dict[str, float]:
            return {
                "set_up": set_up(size),
                "training": training(size),
                "evaluations": sum(map(evaluation, middle)),
                "saving": saving * self._saves(steps),
                "final": final(end),
            }

        size = float(self.config["replicates"]) if self.is_by_replicates else float(self.steps)
        end = self._all_draws(self.steps)
        each = phases(size, self.steps, end, [self._all_draws(k) for k in self.evaluations])
        first_end = self._draws(first, first.steps)
        first_middle = [self._draws(first, max(1, first.steps // 2))] * first.evaluations
        warm = phases(self._size(first), first.steps, first_end, first_middle)
        warm["files"] = files(first_end)
        cold = sum(max(0.0, first.usage[phase] - seconds) for phase, seconds in warm.items())
        rest = first.usage["cpu_seconds"] - sum(first.usage[phase] for phase in PHASES)
        once: float = self.probe.start + rest + cold + files(end)
        return once + self.passes * sum(each.values())

    def mib(self) -> float:
        """Peak memory of the run's process."""
        last = self.warm[-1]
        places = [self._draws(s, s.steps) for s in self.probe.samples]

        def grow(sizes: list[float]) -> float:
            return max(0.0, fit_line(list(zip(places, sizes, strict=True))).b)

        kept = grow([(s.disk + s.checkpoint) / MIB for s in self.probe.samples])
        peaks = grow([s.usage["peak_mib"] for s in self.probe.samples])
        growth = min(max(peaks, COPIES[0] * kept), COPIES[1] * kept)
        more = max(0.0, self._all_draws(self.steps) - places[-1])
        peak: float = last.usage["peak_mib"] + TOUCHED * self.probe.base_mib
        return peak + growth * more

    def megabytes(self) -> float:
        """Disk that the run's record takes."""
        last = self.warm[-1]
        alike = [s for s in self.probe.samples if s.figures == self.first.figures]
        points = [(self._draws(s, s.steps), float(s.disk)) for s in alike]
        files = max(fit_line(points)(self._all_draws(self.steps)), float(alike[-1].disk))
        checkpoints = fit_line([(self._draws(s, s.steps), float(s.checkpoint)) for s in alike])
        kept = min(last.kept, self.passes * self._saves(self.steps))
        files += kept * checkpoints(self._all_draws(self.steps)) + alike[-1].pictures
        files += last.repeated * (self.passes - 1)
        lines = (self.steps // int(self.config["record_every"]) + 1) * last.training_line
        lines += (len(self.evaluations) + 1) * last.evaluation_line
        return (files + lines * self.passes) / MB


def price_from_probe(probe: Probe, config: Mapping[str, Any]) -> Price:
    """Price of a run from its miniatures."""
    if not probe.samples:
        late = f"its probe {probe.late}; a larger --probe-seconds gives it longer"
        return Price(error=late if probe.late else probe.error)
    forecaster = Forecaster(probe, config)
    changes = _changes(probe)
    note = "" if changes < STEADY else "the cost of a step changes with the state"
    spread = max(PROBE_SPREAD, min(changes, ROUGH_SPREAD))
    if probe.late or probe.error:
        note = f"its probe {probe.late or probe.error}"
        spread = max(spread, ROUGH_SPREAD if len(probe.samples) == 1 else LATE_SPREAD)
    return Price(
        cpu=forecaster.cpu(),
        mib=forecaster.mib(),
        megabytes=forecaster.megabytes(),
        source="probe",
        spread=spread,
        note=note,
    )
