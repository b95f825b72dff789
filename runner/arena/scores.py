"""Scores and costs of the runs of a suite, a line for each evaluation of a replicate.

Kept scores have the same lines: ``conf/arena/<suite>.csv.gz``.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from components.metrics.names import COST_PREFIX
from runner.arena.gold import load_gold
from runner.arena.suite import Suite, kept_scores_file
from runner.disk.atomic import write_bytes
from runner.errors import ConfigError
from runner.record.checks import failed_checks
from runner.record.code import describe_commit
from runner.record.facts import Facts
from runner.record.lines import by_replicate, readable_lines
from runner.report.scores.cells import FAILED_CHECK_MARK, SHORT_MARK, mark_failures
from runner.study.snapshot import FrozenRun, Snapshot
from runner.study.table_specs import PROBLEM_KEY

# doubted: it failed checks of its own, short: only those that more steps would pass;
# not applicable: the method needs what the problem lacks
State = Literal["done", "short", "doubted", "failed", "over budget", "not applicable", "not run"]
SCORED = ("done", "short", "doubted")  # states of runs whose scores count
FIXED = ("budget", "row", "problem", "seed", "replicate", "step", "state", "data", "commit")
STATE_OF_MARK: dict[str, State] = {"": "done", SHORT_MARK: "short", FAILED_CHECK_MARK: "doubted"}
TOLERANCE = 1.1  # a budget ends with the step that reaches it; a cost of more is over budget
# diagnostics of chains: independent draws of a wrong q have the best ones
OF_CHAINS = ("ess", "ess_tail", "rhat")
DIGITS = 6  # significant ones, of a kept score


@dataclass(frozen=True)
class Line:
    """Scores and costs of one replicate at one evaluation; ``step`` is −1 at the end of a run."""

    budget: str
    row: str
    problem: str
    seed: int
    replicate: int
    step: int
    state: State
    data: str = ""
    commit: str = ""
    values: dict[str, float] = field(default_factory=dict)  # metric -> value

    @property
    def is_final(self) -> bool:
        """True if it has the scores of a finished run, or says why there are none."""
        return self.step < 0


def read_snapshot(suite: Suite, budget: str, snapshot: Snapshot) -> list[Line]:
    """Lines of every run of a snapshot."""
    return [line for run in snapshot.runs for line in _read_run(suite, budget, snapshot, run)]


def _read_run(suite: Suite, budget: str, snapshot: Snapshot, run: FrozenRun) -> list[Line]:
    facts = snapshot.facts(run) or {}
    state = find_state(run, facts, suite.budgets.get(budget, {}))
    names = (budget, run.row, str(run.cell[PROBLEM_KEY]), facts.get("seed", 0))
    origin = (facts.get("data", run.data), describe_commit(facts.get("git", {})))
    if state not in (*SCORED, "over budget"):
        return [Line(*names, 0, -1, state, *origin)]
    asked = [metric for metric in OF_CHAINS if metric in suite.metrics]
    left_out = asked if asked and not _mixes(run) else []  # asking imports the method
    lines = []
    for line in readable_lines(snapshot.folder(run)):
        if line["phase"] not in ("train", "final"):
            lines += [
                Line(*names, replicate, line["step"], state, *origin, values)
                for replicate, values in _by_replicate(suite, line, left_out).items()
            ]
    result = {"replicate": 0, "metrics": facts["result"]}
    if not set(facts["result"]) & set(suite.metrics):  # its budget ended before its warm-up did
        lines = []
        state = "over budget"
    gold = load_gold(suite)
    for r, values in _by_replicate(suite, result, left_out).items():
        apart = gold.distances(names[2], snapshot.folder(run), r)
        values |= {name: value for name, value in apart.items() if name in suite.metrics}
        lines.append(Line(*names, r, -1, state, *origin, values))
    return lines


def _mixes(run: FrozenRun) -> bool:
    """True unless the run's method is known to draw independently of what it has fitted."""
    from components import registry

    name = run.config.get("inference", {}).get("name")
    is_known = name is not None and registry.exists("inference", name)
    return not is_known or bool(registry.get("inference", name).mixes)


def _by_replicate(
    suite: Suite, line: dict[str, Any], left_out: Sequence[str]
) -> dict[int, dict[str, float]]:
    """Scores of the suite and costs of a line of a record, by replicate."""
    values: dict[int, dict[str, float]] = {}
    for metric in line["metrics"]:
        if metric in left_out:
            continue
        if metric in suite.metrics or metric.startswith(COST_PREFIX):
            for replicate, value in by_replicate(line, metric):
                values.setdefault(replicate, {})[metric] = float(value)
    return values


def find_state(run: FrozenRun, facts: Facts, limits: dict[str, float]) -> State:
    """State of a run, in the words of a leaderboard."""
    if run.refused:
        return "not applicable" if run.unfit else "not run"
    if not facts or facts["state"] in ("pending", "running", "interrupted", "pruned"):
        return "not run"
    if facts["state"] != "done":
        return "failed"
    for kind, limit in limits.items():
        if any(cost > TOLERANCE * limit for cost in facts["result"].get(COST_PREFIX + kind, ())):
            return "over budget"
    return STATE_OF_MARK[mark_failures(failed_checks(facts))]


def to_csv(lines: Iterable[Line]) -> str:
    """Lines as text of a CSV file, in a fixed order."""
    ordered = sorted(lines, key=lambda x: (x.budget, x.row, x.problem, x.seed, x.replicate, x.step))
    metrics = sorted({metric for line in ordered for metric in line.values})
    text = io.StringIO()
    writer = csv.DictWriter(text, [*FIXED, *metrics], restval="", lineterminator="\n")
    writer.writeheader()
    for line in ordered:
        numbers = {metric: f"{value:.{DIGITS}g}" for metric, value in line.values.items()}
        writer.writerow({name: vars(line)[name] for name in FIXED} | numbers)
    return text.getvalue()


def write_kept(lines: Iterable[Line], path: Path) -> None:
    """Writes kept scores, packed; the same lines give the same bytes."""
    write_bytes(path, gzip.compress(to_csv(lines).encode(), 9, mtime=0))


def read_kept(path: Path) -> list[Line]:
    """Kept scores.

    Raises:
        ConfigError: the file is damaged.
    """
    try:
        rows = list(csv.reader(io.StringIO(gzip.decompress(path.read_bytes()).decode())))
        return [_parse(rows[0], row) for row in rows[1:]]
    except (OSError, EOFError, ValueError, IndexError, KeyError) as error:
        raise ConfigError(
            f"{path}: cannot be read ({error}); put back the file that was there"
        ) from None


def read_kept_lines(suite: Suite) -> list[Line]:
    """Kept scores of a suite, and those of a suite that it extends if they have its first score."""
    path = kept_scores_file(suite.name)
    kept = read_kept(path) if path else []
    shared = kept_scores_file(suite.extends) if suite.extends else None
    first = suite.metrics[0]
    inherited = read_kept(shared) if shared else []
    measured = {(k.budget, k.row) for k in inherited if first in k.values}
    return [*kept, *(k for k in inherited if (k.budget, k.row) in measured)]


def _parse(header: Sequence[str], row: Sequence[str]) -> Line:
    cells = dict(zip(header, row, strict=True))
    fixed: dict[str, Any] = {name: cells.pop(name) for name in FIXED}
    if fixed["state"] not in get_args(State):
        raise ValueError(f"state {fixed['state']}")
    fixed |= {name: int(fixed[name]) for name in ("seed", "replicate", "step")}
    return Line(**fixed, values={name: float(text) for name, text in cells.items() if text})


def is_finite(value: float | None) -> bool:
    """True for a score that counts."""
    return value is not None and math.isfinite(value)
