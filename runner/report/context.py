"""Content of a report, as plain values for its templates.

It has tables, runs, provenance, and notes that must not be overlooked.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from runner.compose.protocol import UNKNOWN
from runner.compose.settings import signed_overrides
from runner.record.checks import failed_checks, verdict
from runner.record.code import describe_commit
from runner.report.origin import Origin
from runner.report.results import OTHER_PROTOCOL_MARK, Cell, TableLayout, describe_replicates
from runner.report.wording import (
    describe_ours,
    describe_published,
    format_count,
    join_words,
    worse_side,
)
from runner.study.definition import StudyDefinition
from runner.study.snapshot import Snapshot
from runner.study.table_specs import TableSpec

FAILED_CHECK_MARK = "†"  # behind a number whose run failed checks
SHOWN = 12  # missing runs that a note names
EARLIER_SCORES_PREFIX = "of earlier scores: "  # before the notes on earlier scores
INCLUDED = "of earlier reports (--with)"  # of a note: earlier scores are among those shown
# notes that hold for the runs of one folder, where earlier scores are included
OUTDATED_PATTERN = re.compile(
    r"[\d,]+ of [\d,]+ runs? are done\. Missing: .*\(not started\)|[\d,]+ rows? without a score: "
)


def _format_signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _view(cell: Cell, spec: TableSpec) -> dict[str, Any]:
    """Values of a cell that the template and Markdown show."""
    summary = cell.summary
    mark = FAILED_CHECK_MARK if cell.doubted else ""
    mark += OTHER_PROTOCOL_MARK if cell.other_protocol else ""
    difference, difference_in_se = _describe_difference(cell, spec.digits + 1)
    return {
        "column": cell.column,
        "value": summary.mean if summary and math.isfinite(summary.mean) else "",
        "ours": cell.format(spec) + mark if summary else "",
        "exact": cell.format(spec, more=2) + mark if summary else "",
        "n": summary.n if summary else None,
        "smoke": cell.smoke,
        "printed": cell.number.text if cell.number else "",
        "bold": cell.bold,
        "word": cell.verdict.word,
        "why": cell.verdict.why,
        "verdict": str(cell.verdict),
        "colour": cell.verdict.kind or "grey",
        "in_se": _format_signed(cell.verdict.in_se, 1) if cell.verdict.in_se is not None else "",
        "difference": difference,
        "difference_in_se": difference_in_se,
    }


def _describe_difference(cell: Cell, digits: int) -> tuple[str, str]:
    """Difference from the reference row's cell, and how large it is next to its spread."""
    pair = cell.against
    if pair is not None and pair.n > 1 and pair.se is not None:
        difference = f"{_format_signed(pair.difference, digits)}({pair.se:.{digits}f})"
        p = "" if math.isnan(pair.p) else f", p {pair.p:.2g} (Holm {pair.p_holm:.2g})"
        apart = f"{_format_signed(pair.in_se, 1)} SE" if math.isfinite(pair.in_se) else "no spread"
        return difference, f"{apart}{p}"
    if pair is not None and cell.by_label is not None:
        return _format_signed(pair.difference, digits), str(cell.by_label)
    return "", ""


def table_views(tables: list[TableLayout]) -> list[dict[str, Any]]:
    """Tables, row by row; a protocol or a note that an earlier table has is not repeated."""
    views = [_table_view(laid) for laid in tables]
    for key in ("protocol", "note"):
        shown = set()
        for view in views:
            if view[key] in shown:
                view[key] = ""
            shown.add(view[key])
    return views


def _table_view(laid: TableLayout) -> dict[str, Any]:
    published = laid.published
    previous = None
    rows: list[dict[str, Any]] = []
    for row, cells in laid.rows:
        views = [_view(cell, laid.spec) for cell in cells]
        compared = any(v["difference"] for v in views)
        first = row.published_label != previous
        rows.append(
            {
                "name": row.name,
                "label": row.label,
                "preset": row.preset,
                "cells": views,
                "first": first,
                "compared": compared,
            }
        )
        previous = row.published_label
    columns = laid.spec.columns
    return {
        "name": laid.spec.name,
        "title": laid.spec.title,
        "smoke": laid.smoke,
        "columns": laid.columns,
        "column_name": columns.split(".")[-1] if isinstance(columns, str) else "column",
        "worse_side": worse_side(laid),
        "ours": describe_ours(laid),
        "rows": rows,
        "bold": any(c.bold for _, cells in laid.rows for c in cells),
        "whys": any(c["why"] for row in rows for c in row["cells"]),
        "presets": any(row["preset"] for row in rows),
        "against": any(row["compared"] for row in rows),
        "printed": describe_published(laid),
        "protocol": published.protocol if published else "",
        "note": (published.note if published else None) or "",
        "open": len(laid.rows) * len(laid.columns) <= 40,
    }


def run_views(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Every run with its state."""
    listed = []
    for run in snapshot.runs:
        facts = snapshot.facts(run) or {}
        listed.append(
            {
                "name": run.name,
                "state": snapshot.state(run),
                "seconds": f"{facts['seconds']:.0f}" if facts.get("seconds") else "",
                "data": facts.get("data", run.data),
                "record": f"{run.experiment}/{run.signature}" if run.signature else "",
                "checks": verdict(facts),
                "why": run.refused or facts.get("error") or "",
                "facts": facts,
            }
        )
    return listed


def provenance(
    study: StudyDefinition,
    snapshot: Snapshot | None,
    runs: list[dict[str, Any]],
    kept: list[tuple[str, str]],
) -> list[tuple[str, str]]:
    """Provenance of the numbers: data, code, machine, time.

    ``kept`` is the provenance of earlier scores, used unchanged if only these exist.
    """
    if snapshot is None:
        return kept or [("runs", f"none yet: runner study {study.name}")]
    records = [run["facts"] for run in runs if run["facts"]]
    machines = (_describe_machine(f.get("hardware") or {}) for f in records)
    return [
        ("data", _join_distinct(f["data"] for f in records)),
        ("replicates", describe_replicates(study, [f["replicates"] for f in records])),
        ("runs", _describe_states(runs)),
        ("frozen", f"{snapshot.taken}, commit {snapshot.git[:10] or 'unknown'}"),
        ("overrides of this launch", " ".join(signed_overrides(snapshot.extra)) or "none"),
        ("code", _join_distinct(describe_commit(f.get("git") or {}) for f in records)),
        ("versions", _join_distinct(_describe_versions(f.get("versions") or {}) for f in records)),
        ("machine", _join_distinct(machines)),
        ("threads of a run", _join_distinct(f.get("threads") for f in records)),
        *(
            (EARLIER_SCORES_PREFIX + key.removeprefix(EARLIER_SCORES_PREFIX), value)
            for key, value in kept
        ),
    ]


def has_earlier_scores(snapshot: Snapshot | None, tables: list[TableLayout]) -> bool:
    """Whether a score in the tables is of an earlier report; without runs here all are."""
    cells = (cell for laid in tables for _, row in laid.rows for cell in row)
    return snapshot is None or any(cell.earlier for cell in cells)


def _describe_states(runs: list[dict[str, Any]]) -> str:
    """How many runs are in each state, the time that all took, and their CPU hours if all of the
    records have them."""
    states = Counter(run["state"] for run in runs)
    hours = sum(run["facts"].get("seconds") or 0 for run in runs) / 3600
    usages = [run["facts"].get("usage") for run in runs if run["facts"].get("seconds")]
    cpu = ""
    if usages and all(usages):
        cpu = f", {sum(usage['cpu_seconds'] for usage in usages) / 3600:.1f} CPU hours"
    counts = ", ".join(f"{n} {state}" for state, n in states.items())
    return f"{counts}; {hours:.1f} h of computing{cpu}"


def _join_distinct(values: Iterable[Any]) -> str:
    return ", ".join(dict.fromkeys(str(v) for v in values if v)) or "–"


def _describe_machine(hardware: dict[str, Any]) -> str:
    """GPU of a machine, or its processor."""
    return str(hardware.get("gpu") or hardware.get("cpu") or "")


def _describe_versions(versions: dict[str, str]) -> str:
    packages = ("python", "torch", "gpytorch", "numpy")
    return "  ".join(f"{name} {versions[name]}" for name in packages if versions.get(name))


def notes(
    snapshot: Snapshot | None, tables: list[TableLayout], runs: list[dict[str, Any]], kept: Origin
) -> list[str]:
    """Notes that a reader must not overlook; ``kept``: the origin of earlier scores."""
    if snapshot is None and kept.provenance:
        lines = kept.notes
        if any(INCLUDED in line for line in lines):
            lines = [line for line in lines if not OUTDATED_PATTERN.match(line)]
            lines += _note_empty_rows(tables)
        return list(dict.fromkeys([*lines, *note_protocols(tables)]))
    messages = [
        f"Of the earlier scores: {line}"
        for line in kept.notes
        if line.startswith(FAILED_CHECK_MARK)
    ]
    if any(run["facts"].get("smoke") for run in runs):
        messages.append(
            "Smoke runs are among these: tiny data, few steps. No number here is a result."
        )
    earlier = sum(cell.earlier for laid in tables for _, cells in laid.rows for cell in cells)
    if earlier:
        messages.append(
            f"{format_count(earlier, 'score')} {INCLUDED} are included; "
            f"their runs are not listed here.{_describe_unknown(tables)}"
        )
        messages += _note_empty_rows(tables)
    elif snapshot is None:
        messages.append("Nothing has been run yet: only published numbers are shown.")
    return [
        *messages,
        *note_protocols(tables),
        *_note_other_data(tables),
        *_note_bad_runs(runs),
    ]


def _describe_unknown(tables: list[TableLayout]) -> str:
    """Sentence about earlier scores without a protocol; empty: there are none."""
    cells = [cell for laid in tables for _, line in laid.rows for cell in line]
    unknown = sum(cell.earlier for cell in cells if cell.protocol == UNKNOWN)
    if not unknown:
        return ""
    return f" Protocol unknown: {format_count(unknown, 'score')} of files without one."


def note_protocols(tables: list[TableLayout]) -> list[str]:
    """Lines about earlier scores of another protocol: those that are marked, those left out."""
    marked: dict[str, list[str]] = {}
    left_out: dict[str, list[str]] = {}
    for laid in tables:
        for row, cells in laid.rows:
            for cell in cells:
                name = f"{row.name} ({cell.column})"
                if cell.other_protocol:
                    marked.setdefault(cell.other_protocol, []).append(name)
                if cell.left_out:
                    left_out.setdefault(cell.left_out, []).append(name)
    return [
        *(
            f"{OTHER_PROTOCOL_MARK} {_join_some(names)}: {why}; compared with nothing."
            for why, names in marked.items()
        ),
        *(
            f"Earlier scores left out, of {_join_some(names)}: {why}."
            for why, names in left_out.items()
        ),
    ]


def _join_some(names: list[str]) -> str:
    """Distinct names, the first few of many."""
    distinct = list(dict.fromkeys(names))
    more = f", {len(distinct) - SHOWN} more" if len(distinct) > SHOWN else ""
    return ", ".join(distinct[:SHOWN]) + more


def _note_empty_rows(tables: list[TableLayout]) -> list[str]:
    """A line that names the rows without a score of a run here or of an earlier report."""
    filled: dict[str, bool] = {}
    for laid in tables:
        for row, cells in laid.rows:
            seen = any(cell.values or cell.reason for cell in cells)
            filled[row.name] = filled.get(row.name, False) or seen
    empty = [name for name, seen in filled.items() if not seen]
    if not empty:
        return []
    more = f"; {len(empty) - SHOWN} more" if len(empty) > SHOWN else ""
    return [f"{format_count(len(empty), 'row')} without a score: {'; '.join(empty[:SHOWN])}{more}."]


def describe_part(
    only: Sequence[str], runs: list[dict[str, Any]], with_earlier: bool = False
) -> list[str]:
    """Selection of a partial report, how many runs are done, and the others by state.

    ``with_earlier``: earlier scores are included, so that a run that is missing here may
    have its scores there.
    """
    lines = []
    if only:
        selection = " ".join(f"--only {text}" for text in only)
        lines.append(f"Part of the study: {selection}.")
    missing = [run for run in runs if run["state"] != "done"]
    if missing and not with_earlier:
        states: dict[str, list[str]] = {}
        for run in missing[:SHOWN]:
            states.setdefault(run["state"], []).append(run["name"])
        names = "; ".join(f"{', '.join(listed)} ({state})" for state, listed in states.items())
        more = f"; {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        done = len(runs) - len(missing)
        count = format_count(len(runs), "run")
        lines.append(f"{done} of {count} are done. Missing: {names}{more}.")
    return lines


def _note_other_data(tables: list[TableLayout]) -> list[str]:
    """A line for each pair of data that our scores and published ones were obtained on."""
    apart: dict[tuple[str, str], list[str]] = {}
    for laid in tables:
        other = [d for d in laid.data if laid.published and not laid.published.is_comparable_on(d)]
        if other and laid.published:
            apart.setdefault((", ".join(other), laid.published.data_label), []).append(
                laid.published.where.split(",")[0]
            )
    return [
        f"Ours were obtained on {ours}, those of {join_words(where)} on {theirs}: "
        "the two are not compared."
        for (ours, theirs), where in apart.items()
    ]


def _note_bad_runs(runs: list[dict[str, Any]]) -> list[str]:
    """A line about the runs that failed their checks."""
    messages = []
    doubted = [failures for run in runs if (failures := failed_checks(run["facts"]))]
    if doubted:
        counts = Counter(name for lost in doubted for name in lost)
        names = "; ".join(f"{name} ({n})" for name, n in counts.most_common())
        messages.append(
            f"{FAILED_CHECK_MARK} {len(doubted)} of {len(runs)} runs failed checks, so that "
            f"their numbers are not to be trusted as they are. Not fulfilled: {names}."
        )
    return messages
