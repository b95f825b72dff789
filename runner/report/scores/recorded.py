"""Scores of a run by replicate, from its facts and the lines of its record."""

from __future__ import annotations

import statistics
from itertools import pairwise
from pathlib import Path

from runner.record.facts import Facts
from runner.record.lines import by_replicate, readable_lines
from runner.statistics.paired_tests import ReplicateScores

STEP_TIME = "milliseconds_per_step"  # metric derived from the times in the record
# prefix of a metric: mean over the evaluations in the second half of the steps
LATE_METRIC_PREFIX = "late/"
ESS_RATE = "ess_per_second"  # ess divided by the time of all steps, including burn-in


def step_times(folder: Path) -> dict[int, float]:
    """Median milliseconds per step by replicate, from the times of recorded training lines (the median
    is robust to evaluations and checkpoints between lines)."""
    points: dict[int, list[tuple[int, float]]] = {}  # (step, seconds) of each training line
    for line in readable_lines(folder):
        if line["phase"] == "train":
            points.setdefault(line["replicate"], []).append((line["step"], line["time"]))
    medians = {}
    for r, each in points.items():
        times = [
            1000 * (end - start) / (step - previous)
            for (previous, start), (step, end) in pairwise(each)
            if 1 < previous < step  # the first step includes one-time work
        ]
        if times:
            medians[r] = statistics.median(times)
    return medians


def late_means(folder: Path, metric: str) -> dict[int, float]:
    """Mean of a metric over the evaluations of the second half of the steps, by replicate."""
    lines = [
        line
        for line in readable_lines(folder)
        if line["phase"] != "train" and metric in line["metrics"]
    ]
    half = max((line["step"] for line in lines), default=0) / 2
    # by step, because the last one is evaluated again at the end of a replicate
    series: dict[int, dict[int, float]] = {}
    for line in lines:
        for r, value in by_replicate(line, metric):
            if line["step"] > half:
                series.setdefault(r, {})[line["step"]] = value
    return {r: statistics.fmean(values.values()) for r, values in series.items()}


def has_ended(facts: Facts) -> bool:
    """True if a run has ended, including runs that diverged at the end (scores are not finite)."""
    return facts["state"] == "done" or (facts["state"] == "diverged" and bool(facts["result"]))


def scores(facts: Facts, folder: Path, metric: str) -> ReplicateScores:
    """Scores by (seed, replicate) of a finished run, or of the finished replicates of another run."""
    seed = facts["seed"]
    if metric in (STEP_TIME, ESS_RATE) or metric.startswith(LATE_METRIC_PREFIX):
        replicate_scores = (
            _recorded_scores(facts, folder, metric) if facts["state"] == "done" else {}
        )
    elif has_ended(facts):
        values = facts["result"].get(metric, [])
        replicate_scores = dict(zip(range(facts["replicates"]), values, strict=False))
    else:
        finished = {} if facts["vectorised"] else facts["finished"]
        replicate_scores = {int(r): s[metric] for r, s in finished.items() if metric in s}
    return {(seed, r): score for r, score in replicate_scores.items()}


def _recorded_scores(facts: Facts, folder: Path, metric: str) -> dict[int, float]:
    """Scores of a finished run that are derived from the lines of its record."""
    if metric.startswith(LATE_METRIC_PREFIX):
        return late_means(folder, metric.removeprefix(LATE_METRIC_PREFIX))
    if metric == STEP_TIME:
        return step_times(folder)
    if "ess" not in facts["result"]:
        return {}
    steps = max((line["step"] for line in readable_lines(folder)), default=0)
    times = step_times(folder)
    if facts["vectorised"] and times:  # all replicates share a step
        times = dict.fromkeys(range(facts["replicates"]), times[0] / facts["replicates"])
    return {r: 1000 * facts["result"]["ess"][r] / (t * steps) for r, t in times.items()}
