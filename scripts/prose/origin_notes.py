"""Kept scores that are to be made again: no commit, or a commit with uncommitted changes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from runner.report.context import INCLUDED
from runner.report.origin import Origin, origin_path, read_origin
from scripts.prose.scores import list_scores

DIRTY = "with uncommitted changes"
EARLIER = "of earlier scores: code"


def _find_code(origin: Origin) -> str:
    """Commits behind the scores; of earlier ones where the page has some of them."""
    code = dict(origin.provenance).get("code", "–")
    if DIRTY not in code and any(INCLUDED in note for note in origin.notes):
        earlier = (commit for key, commit in origin.provenance if key == EARLIER)
        return next((commit for commit in earlier if DIRTY in commit), code)
    return code


@cache
def find_reruns(folder: Path) -> dict[str, str]:
    """Studies by name, and why their scores are to be made again."""
    reruns = {}
    for name, scores in list_scores(folder).items():
        path = origin_path(scores)
        origin = read_origin(path) if path.is_file() else None
        code = _find_code(origin) if origin else "–"
        if DIRTY in code:
            reruns[name] = f"code {code}" if len(code) < 80 else f"some runs {DIRTY}"
        elif not any(character.isdigit() for character in code):
            reruns[name] = "commit not kept"
    return reruns
