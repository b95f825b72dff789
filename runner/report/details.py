"""Details that a cell of a report's page opens.

These are its scores, and its runs with their settings, checks, figures and provenance.

They are written into the page as JSON, once for each run; a setting that all runs share
is written once.  Figures of runs are in the page if they are small in total, otherwise
shown from the records, at the records' location.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from runner.disk.inside import is_inside
from runner.record.checks import combine_checks
from runner.record.code import has_changes
from runner.record.facts import is_readable, is_there
from runner.report.compare import flat
from runner.report.figures.charts import numbers
from runner.report.results import TableLayout
from runner.study.snapshot import FrozenRun, Snapshot

MAX_EMBEDDED_BYTES = 2_000_000  # bytes: figures of all runs that are written into the page


def details(tables: list[TableLayout], snapshot: Snapshot | None, folder: Path) -> dict[str, Any]:
    """``cells`` in the order in which the page shows them, ``runs``, and ``shared`` settings;
    ``folder``: the page's."""
    runs = list(snapshot.runs) if snapshot else []
    configs = [flat(run.config) for run in runs]
    shared = dict(configs[0]) if configs else {}
    for config in configs:
        shared = {key: value for key, value in shared.items() if config.get(key) == value}
    places = [snapshot.folder(run) if snapshot and run.signature else None for run in runs]
    pictures = [list_record_figures(place) if place else [] for place in places]
    embed = (
        sum(picture.stat().st_size for images in pictures for picture in images)
        <= MAX_EMBEDDED_BYTES
    )
    index = {place: i for i, place in enumerate(places) if place}
    cells = [
        {
            "title": ", ".join(filter(None, [row.name, cell.column])),
            "verdict": str(cell.verdict),
            "data": cell.data,
            "scores": [
                [seed, r, score]
                for (seed, r), score in zip(
                    sorted(cell.values), _sorted_values(cell.values), strict=True
                )
            ],
            "runs": [index[place] for place in cell.folders if place in index],
            "earlier": cell.earlier,
        }
        for laid in tables
        for row, line in laid.rows
        for cell in line
    ]
    run_entries = [
        _run(
            run,
            (snapshot.facts(run) if snapshot else None) or {},
            config,
            shared,
            place,
            images,
            folder,
            embed,
        )
        for run, config, place, images in zip(runs, configs, places, pictures, strict=True)
    ]
    return {"cells": cells, "runs": run_entries, "shared": shared}


def _sorted_values(values: dict[tuple[int, int], float]) -> list[float | None]:
    return numbers(values[key] for key in sorted(values))


def _run(
    run: FrozenRun,
    facts: dict[str, Any],
    config: dict[str, str],
    shared: dict[str, str],
    place: Path | None,
    pictures: list[Path],
    folder: Path,
    embed: bool,
) -> dict[str, Any]:
    """One run: what it was asked, what became of it, and where it lies."""
    git = facts.get("git") or {}
    machine = facts.get("hardware") or {}
    code = git.get("sha", "")[:10] + (" with uncommitted changes" if has_changes(git) else "")
    versions = "  ".join(f"{k} {v}" for k, v in (facts.get("versions") or {}).items())
    provenance = {
        "state": (facts.get("state") or "not started")
        + (f": {facts['error']}" if facts.get("error") else ""),
        "data": facts.get("data", run.data),
        "seed, replicates": f"{facts['seed']}, {facts['replicates']}" if facts else "",
        "started": facts.get("started") or "",
        "seconds": f"{facts['seconds']:.1f}" if facts.get("seconds") else "",
        "code": code,
        "versions": versions,
        "machine": machine.get("gpu") or machine.get("cpu") or "",
        "threads": str(facts.get("threads") or ""),
    }
    checks = [
        {
            "mark": {True: "✓", False: "✗", None: "–"}[c["passed"]],
            "text": f"{c['check']}: {c['detail']}",
        }
        for c in combine_checks(facts)
    ]
    return {
        "name": run.name,
        "command": " ".join(run.overrides),
        "refused": run.refused or "",
        "settings": {key: value for key, value in config.items() if key not in shared},
        "provenance": {key: value for key, value in provenance.items() if value},
        "checks": checks,
        "figures": [
            {"name": p.stem, "source": _embed_picture(p) if embed else _link(p, folder)}
            for p in pictures
        ],
        "record": _link(place, folder) if place and is_there(place) else "",
    }


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
