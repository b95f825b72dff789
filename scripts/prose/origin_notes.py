"""Kept scores that are to be made again: no commit, or a commit with uncommitted changes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from runner.report.origin import path_of, read_origin

DIRTY = "with uncommitted changes"


@cache
def find_reruns(folder: Path) -> dict[str, str]:
    """Studies by name, and why their scores are to be made again."""
    reruns = {}
    for scores in sorted(folder.glob("*_replicates.csv")):
        path = path_of(scores)
        origin = read_origin(path) if path.is_file() else None
        code = dict(origin.provenance).get("code", "–") if origin else "–"
        name = scores.name.removesuffix("_replicates.csv")
        if DIRTY in code:
            reruns[name] = f"code {code}" if len(code) < 80 else f"some runs {DIRTY}"
        elif not any(character.isdigit() for character in code):
            reruns[name] = "commit not kept"
    return reruns
