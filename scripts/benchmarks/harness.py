"""Harness of the benchmarks: options, interleaved timing, ratios, printing and the JSON line.

``table.yaml`` has the function, the peer, the goals and the options of every benchmark.  The
function defines our implementation and the peers' ("ways") of a workload, and asserts equal results
before timing them::

    def measure(options, report):
        ways = {"ours": ..., "broadcast": ...}
        report.assert_close("directions", ways["ours"](), ways["broadcast"](), 1e-4)
        report.race("K = 100", ways, options.repeats)

Ways are timed alternately, in CPU seconds of this process, so that other load on the machine affects
all of them equally.  A ratio is the peer's time divided by ours, paired run by run; above 1 ours is
faster.  The report shows the median and its interval.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from pydantic import BaseModel, ConfigDict
from scipy.stats import binom
from torch import Tensor

from runner.execution.memory import keep_freed_memory
from scripts.peers.installed import ABSENT

TABLE = Path(__file__).with_name("table.yaml")
Way = Callable[[], Any]
Seconds = dict[str, np.ndarray[Any, np.dtype[Any]]]


class Measured(float):
    """Seconds measured by an implementation itself, used in place of the harness's clock."""


class Option(BaseModel):
    """Command-line option with its default and its value under ``--smoke``; a list accepts several
    values."""

    model_config = ConfigDict(extra="forbid")
    default: Any
    smoke: Any = None  # None means the default
    help: str | None = None

    def add_to(self, parser: argparse.ArgumentParser, name: str) -> None:
        many = isinstance(self.default, list)
        example = self.default[0] if many else self.default
        parser.add_argument(
            f"--{name}",
            type=type(example),
            nargs="+" if many else None,
            default=self.default,
            help=self.help or f"default: {self.default}",
        )


def format_seconds(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds / 1e-9:.1f} ns"


def largest_difference(ours: Any, theirs: Any) -> float:
    """Relative difference in norm of two arrays or tensors."""
    a, b = (
        x.detach().double().numpy() if isinstance(x, Tensor) else np.asarray(x, float)
        for x in (ours, theirs)
    )
    return float(np.linalg.norm(a - b) / max(float(np.linalg.norm(b)), 1e-300))


class Report:
    """Measurements of one benchmark."""

    def __init__(self, goals: Mapping[str, float]):
        self.goals = dict(goals)
        self.ratios: dict[str, list[float]] = {}
        self.facts: dict[str, Any] = {}

    def assert_close(self, what: str, ours: Any, theirs: Any, within: float) -> None:
        """Assert that the relative difference in norm is below ``within``."""
        difference = largest_difference(ours, theirs)
        assert difference < within, f"{what} differ by {difference:.1e}"
        print(f"{what}: equal within {difference:.0e}")

    def assert_equal_means(self, samples: Mapping[str, Any], most: float = 4.0) -> None:
        """Assert that means of independent samples [n, k] differ from the first sample's means by at
        most ``most`` standard errors."""
        moments = {}
        for name, values in samples.items():
            rows = np.asarray(values, float).reshape(len(values), -1)
            moments[name] = rows.mean(0), rows.std(0, ddof=1) / len(rows) ** 0.5
            texts = [f"{m:9.3f} ± {e:.3f}" for m, e in zip(*moments[name], strict=True)]
            print(f"{name:40s} {'  '.join(texts[:4])}")
        mean, error = next(iter(moments.values()))
        for name, (other, other_error) in moments.items():
            z = np.abs(other - mean) / np.maximum(np.hypot(error, other_error), 1e-12)
            assert z.max() < most, f"{name}: means differ, |z| {z.tolist()}"

    def time(
        self,
        ways: Mapping[str, Way],
        repeats: int,
        *,
        warmups: int = 1,
        clock: Callable[[], float] = time.process_time,
        inspect: Callable[[str, Any], None] = lambda name, result: None,
        at_most: Mapping[str, int] | None = None,
        shuffle: bool = False,
    ) -> Seconds:
        """Seconds of each way, run alternately.

        ``inspect`` receives every timed result, untimed.  ``at_most`` limits the number of runs of
        some ways, which also have no warm-up.  ``shuffle`` permutes the order in each round.
        """
        limits = at_most or {}
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for repeat in range(-warmups, repeats):
            names = list(ways)
            if shuffle:
                names = np.random.default_rng(repeat + warmups).permutation(names).tolist()
            for name in names:
                if name in limits and not 0 <= repeat < limits[name]:
                    continue
                start = clock()
                result = ways[name]()
                duration = clock() - start
                if repeat >= 0:
                    measured = isinstance(result, Measured)
                    seconds[name].append(float(result) if measured else duration)
                    inspect(name, result)
        for name, values in seconds.items():
            print(f"{name:40s} {format_seconds(float(np.median(values)))}", flush=True)
        return {name: np.array(values) for name, values in seconds.items()}

    def compare(self, case: str, ours: Any, theirs: Any) -> None:
        """Record the ratio of the peer's seconds to ours, run by run."""
        n = min(len(ours), len(theirs))
        self.record(case, np.asarray(theirs)[:n] / np.asarray(ours)[:n])

    def race(self, case: str, ways: Mapping[str, Way], repeats: int, **keys: Any) -> Seconds:
        """Time several ways and compare the first, ours, with each of the others.

        ``{}`` in a case is replaced by the name of the peer; ``keys`` are passed to ``time``.
        """
        seconds = self.time(ways, repeats, **keys)
        ours, *others = ways
        for name in others:
            self.compare(case.format(name), seconds[ours], seconds[name])
        return seconds

    def record(self, case: str, values: Iterable[float]) -> None:
        """Record the median of ratios and its 95% interval, from order statistics (with fewer than
        six ratios, their range)."""
        ratios = np.sort(list(values))
        skipped = int(max(binom.ppf(0.025, len(ratios), 0.5) - 1, 0))
        self.set_ratio(case, float(np.median(ratios)), ratios[skipped], ratios[-1 - skipped])

    def set_ratio(self, case: str, median: float, low: float, high: float) -> None:
        self.ratios[case] = [float(f"{value:.4g}") for value in (median, low, high)]
        print("{}: ratio {} ({} to {})".format(case, *self.ratios[case]), flush=True)


class Benchmark(BaseModel):
    """Function, peer, goals and options of a benchmark; ``goals`` maps cases to required ratios."""

    model_config = ConfigDict(extra="forbid")
    measure: str  # module.function
    peer: str
    goals: dict[str, float] = {}
    options: dict[str, Option] = {}
    keep_memory: bool = True  # the process keeps freed memory, like every run

    def parse(self, name: str, arguments: Sequence[str]) -> argparse.Namespace:
        """Values of the options; explicit values override the ``--smoke`` values."""
        parser = argparse.ArgumentParser(f"python -m scripts.benchmarks {name}")
        parser.add_argument("--smoke", action="store_true", help="a quick test with tiny sizes")
        for key, option in self.options.items():
            option.add_to(parser, key)
        if parser.parse_args(arguments).smoke:
            tiny = {key: option.smoke for key, option in self.options.items()}
            parser.set_defaults(**{key: value for key, value in tiny.items() if value is not None})
        return parser.parse_args(arguments)


def read_table() -> dict[str, Benchmark]:
    """All benchmarks by name."""
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return {name: Benchmark(**entry) for name, entry in table.items()}


def run(name: str, arguments: Sequence[str]) -> None:
    """Run a benchmark and print the JSON line; exit with ABSENT if no case could be measured."""
    benchmark = read_table()[name]
    options = benchmark.parse(name, arguments)
    module, _, function = benchmark.measure.partition(".")
    measure = getattr(importlib.import_module(f"scripts.benchmarks.{module}"), function)
    torch.set_num_threads(1)
    if benchmark.keep_memory:
        keep_freed_memory()
    report = Report(benchmark.goals)
    measure(options, report)
    if not report.ratios:
        raise SystemExit(ABSENT)
    line = {"benchmark": name, "peer": benchmark.peer, "ratios": report.ratios}
    line |= {"goals": report.goals, **report.facts}
    print(json.dumps(line, ensure_ascii=False))


def repeat_way(way: Way, times: int) -> Way:
    """The same way, executed ``times`` times in one timed run."""

    def run() -> None:
        for _ in range(times):
            way()

    return run
