"""Scores of a run by replicate and step: the only module that reads them from a record.

Reports, comparisons, sweeps, the arena and the Python interface select from these values.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from runner.record.facts import Facts, ScoreLists
from runner.record.lines import Line, readable_lines

ReplicateScores = dict[tuple[int, int], float]  # (seed, replicate) -> score
ByReplicate = dict[int, float]
STEP_TIME = "milliseconds_per_step"  # metric derived from the times in the record
# prefix of a metric: mean over the evaluations in the second half of the steps
LATE_METRIC_PREFIX = "late/"
ESS_RATE = "ess_per_second"  # ess divided by the time of all steps, including burn-in
TRAINING = "train"  # phase of lines that are not evaluations


class RecordedScores(NamedTuple):
    """Values of one replicate in a line of a record."""

    replicate: int
    step: int
    phase: str
    seconds: float  # of training so far, without earlier evaluations
    values: dict[str, Any]


def split_replicates(metrics: Mapping[str, Any], replicate: int = 0) -> dict[int, dict[str, Any]]:
    """Values by replicate: of all replicates in a list, or of the replicate that has the line."""
    values = defaultdict[int, dict[str, Any]](dict)
    for metric, value in metrics.items():
        for r, each in enumerate(value) if isinstance(value, list) else [(replicate, value)]:
            values[r][metric] = each
    return values


def list_scores(lines: Iterable[Line]) -> list[RecordedScores]:
    """Values of each replicate in each line, in the order of the lines."""
    clock: ByReplicate = {}  # time of the last line by replicate
    seconds = defaultdict[int, float](float)
    scores = []
    for line in lines:
        replicate = line["replicate"]
        if line["phase"] == TRAINING:
            seconds[replicate] += line["time"] - clock.get(replicate, 0.0)
        clock[replicate] = line["time"]
        common = line["step"], line["phase"], seconds[replicate]
        for r, values in split_replicates(line["metrics"], replicate).items():
            scores.append(RecordedScores(r, *common, values))
    return scores


def read_evaluations(folder: Path) -> list[RecordedScores]:
    """Values of all evaluations of a record."""
    return [line for line in list_scores(readable_lines(folder)) if line.phase != TRAINING]


def pool(scores: Iterable[Mapping[str, float]]) -> ScoreLists:
    """Values of each metric over replicates, in their order."""
    values = defaultdict[str, list[float]](list)
    for each in scores:
        for metric, value in each.items():
            values[metric].append(value)
    return dict(values)


def read_newest(facts: Facts, folder: Path) -> tuple[ScoreLists, int | None]:
    """Values of each metric by replicate: the result, or those of the last evaluations of a run
    without a result and the step of the newest one."""
    if facts.get("result"):
        return facts["result"], None
    evaluations = read_evaluations(folder)
    newest = {line.replicate: line for line in evaluations}
    values = pool(newest[r].values for r in sorted(newest))
    return values, evaluations[-1].step if evaluations else None


def final_scores(facts: Facts) -> dict[int, dict[str, float]]:
    """Scores of the finished replicates of a run."""
    has_ended = facts.get("state") in ("done", "diverged")
    scores = split_replicates(facts.get("result", {})) if has_ended else {}
    if not scores:  # diverged before the end, or not at the end yet
        for number, values in facts.get("finished", {}).items():
            scores |= split_replicates(values, int(number))
    return scores


def read_scores(facts: Facts, folder: Path, metric: str) -> ReplicateScores:
    """Scores of finished replicates by (seed, replicate).

    Scores that are derived from the lines of the record exist only for finished runs.
    """
    is_late = metric.startswith(LATE_METRIC_PREFIX)
    if not is_late and metric not in (STEP_TIME, ESS_RATE):
        finished = final_scores(facts)
        scores = {r: values[metric] for r, values in finished.items() if metric in values}
    elif facts["state"] != "done":
        scores = {}
    elif is_late:
        scores = _late_means(folder, metric.removeprefix(LATE_METRIC_PREFIX))
    else:
        lines = readable_lines(folder)
        scores = step_times(lines) if metric == STEP_TIME else _ess_rates(facts, lines)
    return {(facts["seed"], r): score for r, score in scores.items()}


def _ess_rates(facts: Facts, lines: list[Line]) -> ByReplicate:
    """Effective sample size per second of a finished run."""
    times = step_times(lines)
    steps = max((line["step"] for line in lines), default=0)
    if facts["vectorised"] and times:  # all replicates share a step
        times = dict.fromkeys(range(facts["replicates"]), times[0] / facts["replicates"])
    ess = facts["result"].get("ess")
    return {r: 1000 * ess[r] / (t * steps) for r, t in times.items()} if ess else {}


def step_times(lines: Iterable[Line]) -> ByReplicate:
    """Median milliseconds per step by replicate, from the times of recorded training lines (the median
    is robust to evaluations and checkpoints between lines)."""
    points = defaultdict[int, list[tuple[int, float]]](list)  # (step, seconds) of training lines
    for line in lines:
        if line["phase"] == TRAINING:
            points[line["replicate"]].append((line["step"], line["time"]))
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


def _late_means(folder: Path, metric: str) -> ByReplicate:
    """Mean of a metric over the evaluations of the second half of the steps, by replicate."""
    # by step, because the last one is evaluated again at the end of a replicate
    series = {
        (line.replicate, line.step): line.values[metric]
        for line in read_evaluations(folder)
        if metric in line.values
    }
    half = max((step for _, step in series), default=0) / 2
    late = defaultdict[int, list[float]](list)
    for (r, step), value in series.items():
        if step > half:
            late[r].append(value)
    return {r: statistics.fmean(values) for r, values in late.items()}
