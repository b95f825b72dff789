"""Details that a cell of a report's page opens.

These are its scores, and its runs with their settings, checks, figures and provenance.

They are written into the page as JSON, once for each run; a setting that all runs share
is written once.  Figures of runs are in the page if they are small in total, otherwise
shown from the records, at the records' location.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from runner.disk.inside import is_inside
from runner.record.checks import combine_checks
from runner.record.code import describe_commit
from runner.record.facts import is_readable, is_there
from runner.report.compared_record import describe_machine, flat
from runner.report.figures.traces import numbers
from runner.report.scores.cells import Cell, TableLayout
from runner.study.snapshot import FrozenRun, Snapshot

MAX_EMBEDDED_BYTES = 2_000_000  # bytes: figures of all runs that are written into the page


def details(tables: list[TableLayout], snapshot: Snapshot | None, folder: Path) -> dict[str, Any]:
    """``cells`` in the order in which the page shows them, ``runs``, and ``shared`` settings;
    ``folder``: the page's."""
    runs = _collect_run_details(snapshot) if snapshot else []
    shared = dict(runs[0].config) if runs else {}
    for run in runs:
        shared = {key: value for key, value in shared.items() if run.config.get(key) == value}
    size = sum(picture.stat().st_size for run in runs for picture in run.pictures)
    index = {run.place: i for i, run in enumerate(runs) if run.place}
    return {
        "cells": [_describe_cell(cell, index) for laid in tables for cell in laid.cells],
        "runs": [run.describe(shared, folder, size <= MAX_EMBEDDED_BYTES) for run in runs],
        "shared": shared,
    }


def _describe_cell(cell: Cell, index: dict[Path, int]) -> dict[str, Any]:
    """One cell; ``index``: position of a run by its record."""
    keys = sorted(cell.values)
    values = numbers(cell.values[key] for key in keys)
    return {
        "title": ", ".join(filter(None, [cell.row.name, cell.column])),
        "verdict": str(cell.verdict),
        "data": cell.data,
        "scores": [[*key, score] for key, score in zip(keys, values, strict=True)],
        "runs": [index[place] for place in cell.folders if place in index],
        "earlier": cell.earlier,
    }


@dataclass
class RunDetails:
    """One run with its facts, its settings, its record and the figures in it."""

    run: FrozenRun
    facts: dict[str, Any]
    config: dict[str, str]
    place: Path | None
    pictures: list[Path]

    def describe(self, shared: dict[str, str], folder: Path, embed: bool) -> dict[str, Any]:
        """Settings that are not shared, provenance, checks, figures and location of the run."""
        checks = [
            {
                "mark": {True: "✓", False: "✗", None: "–"}[c["passed"]],
                "text": f"{c['check']}: {c['detail']}",
            }
            for c in combine_checks(self.facts)
        ]
        return {
            "name": self.run.name,
            "command": " ".join(self.run.overrides),
            "refused": self.run.refused or "",
            "settings": {key: value for key, value in self.config.items() if key not in shared},
            "provenance": {key: value for key, value in self._provenance().items() if value},
            "checks": checks,
            "figures": [
                {"name": p.stem, "source": _embed_picture(p) if embed else _link(p, folder)}
                for p in self.pictures
            ],
            "record": _link(self.place, folder) if self.place and is_there(self.place) else "",
        }

    def _provenance(self) -> dict[str, str]:
        facts = self.facts
        machine = facts.get("hardware") or {}
        versions = "  ".join(f"{k} {v}" for k, v in (facts.get("versions") or {}).items())
        return {
            "state": (facts.get("state") or "not started")
            + (f": {facts['error']}" if facts.get("error") else ""),
            "data": facts.get("data", self.run.data),
            "seed, replicates": f"{facts['seed']}, {facts['replicates']}" if facts else "",
            "started": facts.get("started") or "",
            "seconds": f"{facts['seconds']:.1f}" if facts.get("seconds") else "",
            "code": describe_commit(facts.get("git") or {}),
            "versions": versions,
            "machine": describe_machine(machine),
            "threads": str(facts.get("threads") or ""),
        }


def _collect_run_details(snapshot: Snapshot) -> list[RunDetails]:
    details = []
    for run in snapshot.runs:
        place = snapshot.folder(run) if run.signature else None
        pictures = list_record_figures(place) if place else []
        facts = snapshot.facts(run) or {}
        details.append(RunDetails(run, facts, flat(run.config), place, pictures))
    return details


def list_record_figures(record: Path) -> list[Path]:
    """The figures that lie in a record; a link to a file elsewhere is no figure of it."""
    return [
        path
        for path in sorted(record.glob("figures/*.png"))
        if path.is_file() and is_inside(record, path) and is_readable(path)
    ]


def _embed_picture(picture: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"


def _link(place: Path, folder: Path) -> str:
    """From the page to a file of a record: relative, so that both can be moved together."""
    try:
        way = Path(os.path.relpath(place, folder)).as_posix()
    except ValueError:  # another drive
        return place.as_uri()
    return quote(way) + ("/" if place.is_dir() else "")
