"""Content of a report, as plain values for its templates: tables, runs and provenance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from runner.compose.settings import signed_overrides
from runner.record.checks import verdict
from runner.record.code import describe_commit
from runner.report.compared_record import describe_machine
from runner.report.results import describe_replicates
from runner.report.scores.cells import OTHER_PROTOCOL_MARK, Cell, TableLayout
from runner.report.wording import (
    describe_ours,
    describe_published,
    worse_side,
)
from runner.study.definition import StudyDefinition
from runner.study.snapshot import Snapshot
from runner.study.table_specs import TableSpec

FAILED_CHECK_MARK = "†"  # behind a number whose run failed checks
EARLIER_SCORES_PREFIX = "of earlier scores: "  # before the notes on earlier scores
INCLUDED = "of earlier reports (--with)"  # of a note: earlier scores are among those shown


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
        "bold": any(cell.bold for cell in laid.cells),
        "whys": any(cell.verdict.why for cell in laid.cells),
        "presets": any(row.preset for row, _ in laid.rows),
        "against": any(row["compared"] for row in rows),
        "printed": describe_published(laid),
        "protocol": published.protocol if published else "",
        "note": (published.note if published else None) or "",
        "open": len(laid.cells) <= 40,
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
    machines = (describe_machine(f.get("hardware") or {}) for f in records)
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
    return snapshot is None or any(cell.earlier for laid in tables for cell in laid.cells)


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


def _describe_versions(versions: dict[str, str]) -> str:
    packages = ("python", "torch", "gpytorch", "numpy")
    return "  ".join(f"{name} {versions[name]}" for name in packages if versions.get(name))
