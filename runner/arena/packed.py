"""Checks of a pack of scores without running it: rules of its suite, records, and the scores in
them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from components.metrics.names import base_name
from runner.arena import frozen
from runner.arena.suite import GROUP, load_suite
from runner.disk.scratch import scratch_folder
from runner.record.facts import Facts
from runner.record.lines import readable_lines
from runner.report.exchange.opened import OpenedArchive
from runner.report.report import write
from runner.study.snapshot import FrozenRun, Snapshot
from runner.study.table_specs import PROBLEM_KEY

# measured times differ between runs
TIMES = frozenset(
    {
        "cost/cpu_seconds",
        "cost/attack_cpu_seconds",
        "ess_per_second",
        "milliseconds",
        "milliseconds_per_step",
        "total_seconds",
        "variance_seconds",
    }
)
Scores = dict[str, Any]


@dataclass(frozen=True)
class PackedCell:
    """A replicate of a run with its packed scores; ``replicate`` is None if all are computed
    together.
    """

    run: FrozenRun
    replicate: int | None
    facts: Facts

    @property
    def name(self) -> str:
        """Name of the cell in messages."""
        return self.run.name + ("" if self.replicate is None else f", replicate {self.replicate}")

    @property
    def scores(self) -> Scores:
        """Scores in the record."""
        stated: Scores = self.facts["finished"][str(self.replicate or 0)]
        return stated


def list_cells(snapshot: Snapshot) -> list[PackedCell]:
    """Cells of all finished runs."""
    cells = []
    for run in snapshot.runs:
        facts = snapshot.facts(run)
        if facts is None or facts["state"] != "done":
            continue
        numbers = [None] if facts.get("vectorised") else sorted(map(int, facts["finished"]))
        cells += [PackedCell(run, number, facts) for number in numbers]
    return cells


def list_differences(before: Scores, after: Scores, tolerance: float) -> Iterator[str]:
    """Descriptions of scores that differ by more than the tolerance times the larger of the two."""
    for name in sorted(before.keys() | after.keys()):
        if TIMES & {name, base_name(name).partition("/")[0]}:
            continue
        if name not in before or name not in after:
            yield f"{name} {'is not in the record' if name in after else 'is not reproduced'}"
            continue
        first, other = (s if isinstance(s, list) else [s] for s in (before[name], after[name]))
        if len(first) != len(other):
            yield f"{name} has {len(first)} replicates in the record, {len(other)} here"
        for stated, current in zip(first, other, strict=False):
            both_missing = math.isnan(stated) and math.isnan(current)
            if not both_missing and not math.isclose(stated, current, rel_tol=tolerance):
                yield f"{name} is {stated:.6g} in the record, {current:.6g} here"


def check_table(opened: OpenedArchive, snapshot: Snapshot) -> Iterator[str]:
    """Difference between the pack's table of scores and its records."""
    name = f"{snapshot.name}_replicates.csv"
    packed = opened.folder / "report" / name
    with scratch_folder() as place:
        write(snapshot.name, snapshot.study, snapshot, place)
        again = (place / name).read_text(encoding="utf-8").splitlines()
    stated = packed.read_text(encoding="utf-8").splitlines() if packed.is_file() else []
    given = set(again)
    wrong = [line for line in stated if line not in given]
    missing = len(given - set(stated))
    if wrong:
        yield f"report/{name}: {len(wrong)} lines are not in its records; the first is {wrong[0]}"
    elif missing:
        yield f"report/{name}: lacks {missing} scores of its records"


def list_deviations(snapshot: Snapshot) -> Iterator[str]:
    """Deviations of a pack from the suite in this installation."""
    if not snapshot.study.name.startswith(f"{GROUP}."):
        return  # a study of any other kind
    suite = load_suite(snapshot.study.name.removeprefix(f"{GROUP}."))
    budget = snapshot.name.removeprefix(f"{suite.experiment}.").partition(".")[0]
    limits = suite.budgets.get(budget, {})
    for run in snapshot.runs:
        problem = str(run.cell[PROBLEM_KEY])
        if run.refused:
            continue
        if problem not in suite.problems:
            yield f"{run.name}: the suite has no problem {problem}"
            continue
        if wrong := list(frozen.list_deviations(suite, limits, problem, run.config)):
            yield f"{run.name}: {', '.join(wrong)}: differs from suite {suite.name} in this installation"


def check_records(snapshot: Snapshot, cells: list[PackedCell]) -> Iterator[str]:
    """Scores of records that differ from the last evaluation of their cell."""
    for run, group in itertools.groupby(cells, lambda cell: cell.run):
        last = {
            line["replicate"]: line["metrics"]
            for line in readable_lines(snapshot.folder(run))
            if line["phase"] != "train"
        }
        for cell in group:
            evaluated = last.get(cell.replicate or 0, {})
            stated = {name: value for name, value in cell.scores.items() if name in evaluated}
            shared = {name: evaluated[name] for name in stated}
            for fault in list_differences(stated, shared, 0.0):
                yield f"{cell.name}: record: {fault}"
