"""Important notes of a report."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from runner.record.checks import failed_checks
from runner.report.context import INCLUDED
from runner.report.origin import Origin
from runner.report.run_views import RunView
from runner.report.scores.cells import (
    FAILED_CHECK_MARK,
    OTHER_PROTOCOL_MARK,
    SHORT_MARK,
    Cell,
    TableLayout,
    list_cells,
    mark_failures,
)
from runner.report.wording import format_count, join_some, join_words
from runner.study.protocol import UNKNOWN
from runner.study.snapshot import Snapshot

SHOWN = 12  # largest number of names in a note
FAILURES = {  # mark -> text of the note
    FAILED_CHECK_MARK: "failed checks, so their numbers are unreliable. Failed",
    SHORT_MARK: "were too short: with more steps they would pass the checks. Failed",
}
# notes that apply only to the runs of one folder if earlier scores are included
OUTDATED_PATTERN = re.compile(
    r"[\d,]+ of [\d,]+ runs? are done\. Missing: .*\(not started\)|[\d,]+ rows? without a score: "
)


def notes(
    snapshot: Snapshot | None, tables: list[TableLayout], runs: list[RunView], kept: Origin
) -> list[str]:
    """Notes of a report; ``kept`` is the origin of earlier scores."""
    if snapshot is None and kept.provenance:
        lines = kept.notes
        if any(INCLUDED in line for line in lines):
            lines = [line for line in lines if not OUTDATED_PATTERN.match(line)]
            lines += _note_empty_rows(tables)
        return list(dict.fromkeys([*lines, *note_protocols(tables)]))
    messages = [
        f"Of the earlier scores: {line}" for line in kept.notes if line.startswith(tuple(FAILURES))
    ]
    if any(run.facts.get("smoke") for run in runs):
        messages.append(
            "This report contains smoke runs (tiny data, few steps): its numbers are not results."
        )
    earlier = sum(cell.earlier for cell in list_cells(tables))
    if earlier:
        messages.append(
            f"{format_count(earlier, 'score')} {INCLUDED} are included; "
            f"their runs are not listed here.{_describe_unknown(tables)}"
        )
        messages += _note_empty_rows(tables)
    elif snapshot is None:
        messages.append("This study has no runs yet: the tables contain published numbers only.")
    return [
        *messages,
        *note_protocols(tables),
        *_note_other_data(tables),
        *_note_bad_runs(runs),
    ]


def _describe_unknown(tables: list[TableLayout]) -> str:
    """Sentence about earlier scores without a protocol, or empty."""
    unknown = sum(cell.earlier for cell in list_cells(tables) if cell.protocol == UNKNOWN)
    if not unknown:
        return ""
    return f" Protocol unknown for {format_count(unknown, 'score')}."


def note_protocols(tables: list[TableLayout]) -> list[str]:
    """Notes about marked and excluded earlier scores of another protocol."""
    cells = list_cells(tables)
    marked = _group_cells(cells, lambda cell: cell.other_protocol)
    left_out = _group_cells(cells, lambda cell: cell.left_out)
    return [
        *(
            f"{OTHER_PROTOCOL_MARK} {names}: {why}; excluded from comparisons."
            for why, names in marked.items()
        ),
        *(f"Earlier scores excluded for {names}: {why}." for why, names in left_out.items()),
    ]


def _group_cells(cells: list[Cell], reason: Callable[[Cell], str]) -> dict[str, str]:
    """Names of cells by reason."""
    groups = defaultdict[str, dict[str, None]](dict)
    for cell in cells:
        groups[reason(cell)][f"{cell.row.name} ({cell.column})"] = None
    return {why: join_some(names, ", ", SHOWN) for why, names in groups.items() if why}


def _note_empty_rows(tables: list[TableLayout]) -> list[str]:
    """Note about rows without a score from runs or earlier reports."""
    cells = list_cells(tables)
    filled = {cell.row.name for cell in cells if cell.values or cell.reason}
    empty = [name for name in dict.fromkeys(cell.row.name for cell in cells) if name not in filled]
    if not empty:
        return []
    return [f"{format_count(len(empty), 'row')} without a score: {join_some(empty, '; ', SHOWN)}."]


def describe_part(only: Sequence[str], runs: list[RunView], with_earlier: bool) -> list[str]:
    """Describe the selection of a partial report, the number of finished runs, and the other runs
    by state.

    With ``with_earlier``, earlier scores are included and may cover missing runs.
    """
    lines = []
    if only:
        selection = " ".join(f"--only {text}" for text in only)
        lines.append(f"Part of the study: {selection}.")
    missing = [run for run in runs if run.state != "done"]
    if missing and not with_earlier:
        states = defaultdict[str, list[str]](list)
        for run in missing[:SHOWN]:
            states[run.state].append(run.run.name)
        listed = [f"{', '.join(names)} ({state})" for state, names in states.items()]
        more = [f"{len(missing) - SHOWN} more"] if len(missing) > SHOWN else []
        done = f"{len(runs) - len(missing)} of {format_count(len(runs), 'run')}"
        lines.append(f"{done} are done. Missing: {'; '.join(listed + more)}.")
    return lines


def _note_other_data(tables: list[TableLayout]) -> list[str]:
    """Note for each combination of different data in our and published scores."""
    apart = defaultdict[tuple[str, str], list[str]](list)
    for laid in tables:
        published = laid.published
        other = [d for d in laid.data if published and not published.is_comparable_on(d)]
        if other and published:
            pair = ", ".join(other), published.data_label
            apart[pair].append(published.where.partition(",")[0])
    return [
        f"Our scores are for {ours}, those of {join_words(where)} for {theirs}, "
        "so they are not compared."
        for (ours, theirs), where in apart.items()
    ]


def _note_bad_runs(runs: list[RunView]) -> list[str]:
    """Notes about runs with failed checks: biased runs and short runs."""
    messages = []
    failed = [failures for run in runs if (failures := failed_checks(run.facts))]
    for mark, words in FAILURES.items():
        marked = [failures for failures in failed if mark_failures(failures) == mark]
        if marked:
            counts = Counter(name for failures in marked for name in failures)
            names = "; ".join(f"{name} ({n})" for name, n in counts.most_common())
            messages.append(f"{mark} {len(marked)} of {len(runs)} runs {words}: {names}.")
    return messages
