"""Reconstruction of a lost or damaged run.json from the files next to it.

These are recorded lines, checkpoints, files.
"""

from __future__ import annotations

import re
from pathlib import Path

from runner.disk.plain_file import parse_json, read_plain
from runner.record import facts, lines
from runner.record.facts import Facts
from runner.record.lines import read_lines

# Files that every run may leave in its folder; other files there belong to its posterior.
KEEP_MARKER_NAME = "keep"  # a user's own mark: `runner clean` skips the run
OURS = {
    KEEP_MARKER_NAME,
    "config.yaml",
    facts.NAME,
    lines.NAME,
    "mlflow.json",
    "references.bib",
    "profile.json",
    f"{facts.NAME}.damaged",
}


def traces(folder: Path) -> bool:
    """True if a run has been at work in a folder."""
    return any((folder / name).exists() for name in (facts.NAME, lines.NAME)) or any(
        (folder / "checkpoints").glob("r*")
    )


def rebuilt(folder: Path, vectorised: bool) -> Facts:
    """Facts of a record that only its work shows: finished replicates, time taken, code.

    A replicate is finished if its last line exists and the run had continued to the next
    one; the last of them is left to its checkpoint, and its evaluation is repeated.  Check
    results of the others are lost with the file.
    """
    reached = sorted(folder.glob("checkpoints/r*.json"))
    newest = int(reached[-1].stem[1:5]) if reached and re.match(r"r\d{4}-", reached[-1].name) else 0
    recorded = read_lines(folder)
    final = {line["replicate"]: line for line in recorded if line["phase"] == "final"}
    finished = (
        {}
        if vectorised
        else {str(r): line["metrics"] for r, line in sorted(final.items()) if r < newest}
    )
    last = {line["replicate"]: line["time"] for line in recorded}
    return {
        "state": "interrupted",
        "finished": finished,
        "vectorised": vectorised,
        "seconds": float(sum(last.values())),
        "code": _code(reached),
        "artefacts": _files(folder) if "0" in finished else [],
    }


def _code(sidecars: list[Path]) -> list[Facts]:
    """Code identities recorded in the checkpoints, in their order."""
    listed: list[Facts] = []
    for path in sidecars:
        try:
            sidecar = parse_json(read_plain(path))
            entry = {"replicate": sidecar["replicate"], "step": sidecar["step"], **sidecar["code"]}
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if not listed or {**listed[-1], "replicate": 0, "step": 0} != {
            **entry,
            "replicate": 0,
            "step": 0,
        }:
            listed.append(entry)
    return listed


def _files(folder: Path) -> list[str]:
    return sorted(
        p.name
        for p in folder.iterdir()
        if p.is_file() and p.name not in OURS and not p.name.startswith(".")
    )
