"""Scores and costs of the runs of a suite as a frame with a line for each evaluation of a
replicate.

The columns are ``FIXED``, where ``step`` is −1 at the end of a run, and one for each metric, NaN if
a line lacks it.  Kept scores are stored as CSV: ``conf/arena/<suite>.csv.gz``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd

from components.metrics.names import COST_PREFIX
from runner.arena.stored import load_gold, read_stored, stored_file
from runner.arena.suite import Suite
from runner.record.checks import failed_checks
from runner.record.code import describe_commit
from runner.record.facts import Facts
from runner.record.scores import RecordedScores, final_scores, read_evaluations
from runner.report.scores.cells import (
    FAILED_CHECK_MARK,
    JOIN,
    SHORT_MARK,
    list_failures,
    mark_failures,
)
from runner.report.scores.distances import measure_distances, read_predictions
from runner.study.snapshot import FrozenRun, Snapshot
from runner.study.table_specs import PROBLEM_KEY

# doubted: it failed checks of its own, short: only those that more steps would pass;
# not applicable: the problem does not meet a requirement of the method
State = Literal["done", "short", "doubted", "failed", "over budget", "not applicable", "not run"]
SCORED = ("done", "short", "doubted")  # states of runs with valid scores
NUMBERED = ("seed", "replicate", "step")
ORDER = ["budget", "row", "problem", *NUMBERED]  # of kept lines
CHECKS = "checks"  # failed ones, by ``list_failures``; empty if none failed, or their names were not kept
FIXED = [*ORDER, "state", "data", "commit", CHECKS]
TYPES = {name: int if name in NUMBERED else str for name in FIXED}
STATE_OF_MARK: dict[str, State] = {"": "done", SHORT_MARK: "short", FAILED_CHECK_MARK: "doubted"}
TOLERANCE = 1.1  # a budget ends with the step that reaches it; a cost of more is over budget
# diagnostics of chains: independent draws of a wrong q have the best ones
OF_CHAINS = {"ess", "ess_tail", "rhat"}
END = -1  # step of final scores


def to_frame(lines: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Convert lines with values of ``FIXED`` and of metrics to a frame."""
    listed = list(lines)
    metrics = {name for line in listed for name in line}.difference(FIXED)
    frame = pd.DataFrame(listed, columns=[*FIXED, *sorted(metrics)])
    return frame.fillna({CHECKS: ""}).astype(TYPES)


def final_lines(lines: pd.DataFrame) -> pd.DataFrame:
    """Lines with the scores of finished runs, and lines of runs without scores."""
    return lines[lines["step"] < 0]


def list_checks(lines: pd.DataFrame) -> dict[str, str]:
    """Names of the checks that each row failed on at least one problem."""
    names = lines.set_index("row")[CHECKS].str.split(JOIN).explode()
    by_row = names[names != ""].groupby("row")
    return {str(row): JOIN.join(sorted({*failed})) for row, failed in by_row}


def read_snapshots(suite: Suite, budget: str, frozen: Iterable[Snapshot]) -> pd.DataFrame:
    """Lines of all runs in snapshots."""
    gold = load_gold(suite)
    return to_frame(
        line
        for snapshot in frozen
        for run in snapshot.runs
        for line in _read_run(
            suite, budget, snapshot, run, gold[gold["problem"] == run.cell[PROBLEM_KEY]]
        )
    )


def _read_run(
    suite: Suite, budget: str, snapshot: Snapshot, run: FrozenRun, gold: pd.DataFrame
) -> Iterator[dict[str, Any]]:
    facts = snapshot.facts(run) or {}
    state = find_state(run, facts, suite.budgets.get(budget, {}))
    common = {
        "budget": budget,
        "row": run.row,
        "problem": str(run.cell[PROBLEM_KEY]),
        "seed": facts.get("seed", 0),
        "state": state,
        "data": facts.get("data", run.data),
        "commit": describe_commit(facts.get("git", {})),
        CHECKS: list_failures(failed_checks(facts)),
    }
    if "result" not in facts or state not in (*SCORED, "over budget"):
        yield common | {"replicate": 0, "step": END}
        return
    shown = set(suite.metrics)
    method = find_method(run) if shown & OF_CHAINS else None
    if method and not method.mixes:  # it draws independently from its fitted posterior
        shown -= OF_CHAINS
    folder = snapshot.folder(run)
    evaluations = read_evaluations(folder)
    if not shown & set(facts["result"]):  # its budget ended before its warm-up did
        common["state"] = "over budget"
        evaluations = []
    for replicate, step, values in _list_scores(evaluations, facts, shown):
        if step == END:
            apart = measure_distances(read_predictions(folder, replicate), gold)
            values |= {name: apart[name] for name in apart if name in suite.metrics}
        yield common | {"replicate": replicate, "step": step} | values


def _list_scores(
    evaluations: Iterable[RecordedScores], facts: Facts, shown: Set[str]
) -> Iterator[tuple[int, int, dict[str, float]]]:
    """Replicate and step, and the scores in ``shown`` and costs there."""
    lines = [
        (line.replicate, line.step, line.values) for line in evaluations if line.phase != "final"
    ]
    lines += [(r, END, values) for r, values in final_scores(facts).items()]
    for replicate, step, each in lines:
        values = {k: float(v) for k, v in each.items() if k in shown or k.startswith(COST_PREFIX)}
        if values:
            yield replicate, step, values


def find_method(run: FrozenRun) -> type[Any] | None:
    """Inference method of a run, which is imported; None if it is not registered."""
    from components import registry

    name = run.config.get("inference", {}).get("name")
    is_known = name is not None and registry.exists("inference", name)
    return registry.get("inference", name) if is_known else None


def find_state(run: FrozenRun, facts: Facts, limits: dict[str, float]) -> State:
    """State of a run, as named in a leaderboard."""
    if run.refused:
        return "not applicable" if run.unfit else "not run"
    if not facts or facts["state"] in ("pending", "running", "interrupted", "pruned"):
        return "not run"
    if facts["state"] != "done":
        ends = facts.get("budget_ends", {}).values()
        return "failed" if all(end["step"] for end in ends) else "over budget"
    for kind, limit in limits.items():
        if any(cost > TOLERANCE * limit for cost in facts["result"].get(COST_PREFIX + kind, ())):
            return "over budget"
    return STATE_OF_MARK[mark_failures(failed_checks(facts))]


def read_kept(path: Path | None) -> pd.DataFrame:
    """Kept scores; empty if there are none.

    Raises:
        ConfigError: the file is damaged.
    """
    return read_stored(path, TYPES, _check_kept, to_frame([]))


def _check_kept(lines: pd.DataFrame) -> pd.DataFrame:
    texts = [name for name in FIXED if name not in NUMBERED]
    lines[texts] = lines[texts].fillna("")
    if unknown := set(lines["state"]).difference(get_args(State)):
        raise ValueError(f"state {', '.join(unknown)}")
    return lines.astype(dict.fromkeys(lines.columns.difference(FIXED), float))


def read_kept_lines(suite: Suite) -> pd.DataFrame:
    """Stored scores of a suite and, if they have its first score, of the suite that it extends."""
    kept = read_kept(stored_file(suite.name))
    inherited = read_kept(stored_file(suite.extends))
    row = ["budget", "row"]
    first = inherited.reindex(columns=[*row, suite.metrics[0]]).dropna()
    inherited = inherited.merge(first[row].drop_duplicates())
    return pd.concat([kept, inherited], ignore_index=True)
