"""Kept scores to compute again: their code had uncommitted changes, or its commit is unknown or
not in the history.

``lost_commits.txt`` lists the scores found when the history was first checked; a name is removed
when its scores are computed again, and no name is added.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

from runner.report.context import EARLIER_SCORES_PREFIX, INCLUDED
from runner.report.origin import Origin, origin_path, read_origin
from scripts.prose.scores import list_scores

DIRTY = "with uncommitted changes"
COMMIT = re.compile(r"\b[0-9a-f]{10}\b")
LOST = "lost_commits.txt"


@cache
def read_history() -> frozenset[str]:
    """Abbreviated commits that led to this one; empty outside of a repository."""
    call = ["git", "rev-list", "--abbrev-commit", "--abbrev=10", "HEAD"]
    done = subprocess.run(
        call, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return frozenset(done.stdout.split())


def find_fault(origin: Origin) -> str:
    """Reason to compute scores again; empty if all their commits are in the history."""
    included = any(INCLUDED in note for note in origin.notes)
    keys = ["code", f"{EARLIER_SCORES_PREFIX}code"] if included else ["code"]
    code = ", ".join(value for key, value in origin.provenance if key in keys)
    if DIRTY in code:
        return f"the code was {code}" if len(code) < 80 else f"some runs used code {DIRTY}"
    commits = COMMIT.findall(code)
    history = read_history()
    lost = [commit for commit in commits if history and commit not in history]
    if lost:
        return f"commit {', '.join(lost)} is not in the history"
    return "" if commits else "the commit is unknown"


@cache
def find_reruns(folder: Path) -> dict[str, str]:
    """Studies by name, with the reason to compute their scores again."""
    reruns = {}
    for name, scores in list_scores(folder).items():
        path = origin_path(scores)
        reruns[name] = find_fault(read_origin(path) if path.is_file() else Origin())
    return {name: why for name, why in reruns.items() if why}


def check_commits(folder: Path) -> list[str]:
    """List errors: scores of unknown code missing from ``lost_commits.txt``, and its outdated names."""
    path = folder / LOST
    listed = set(path.read_text(encoding="utf-8").split() if path.is_file() else [])
    reruns = find_reruns(folder)
    return [
        *(f"{name}: {why}; run it again" for name, why in reruns.items() if name not in listed),
        *(
            f"{LOST}: {name} has a known commit; delete the line"
            for name in sorted(listed - set(reruns))
        ),
    ]
