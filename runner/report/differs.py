"""Differences between a row of a study and its reference row.

They are the settings of its runs that differ from the runs in the same cell.
"""

from __future__ import annotations

from runner.report.compared_record import flat
from runner.study.definition import StudyDefinition
from runner.study.snapshot import FrozenRun, Snapshot

MOST = 8  # settings that a line names


def beside(study: StudyDefinition) -> str:
    """The row that the others are told from: the reference, or the first."""
    return study.reference or study.rows[0].name


def differs(snapshot: Snapshot | None) -> dict[str, str]:
    """By row, its settings that differ from the reference row, changed components first.

    A setting has a value for each cell if they differ from cell to cell.  Keys that only
    one of the two has belong to another component: they are counted.
    """
    if snapshot is None:
        return {}
    base = beside(snapshot.study)
    theirs = {
        _cell(run): flat(run.config) for run in snapshot.runs if run.row == base and not run.refused
    }
    changes: dict[str, dict[str, dict[str, None]]] = {}
    extra_keys: dict[str, set[str]] = {}
    for run in snapshot.runs:
        other = theirs.get(_cell(run))
        if run.row == base or run.refused or other is None:
            continue
        for key, value in flat(run.config).items():
            if key not in other:
                extra_keys.setdefault(run.row, set()).add(key)
            elif other[key] != value:
                changes.setdefault(run.row, {}).setdefault(key, {})[value] = None
    descriptions = {}
    for row in dict.fromkeys(run.row for run in snapshot.runs):
        parts = _describe_changes(changes.get(row, {}), len(extra_keys.get(row, ())), base)
        if parts:
            descriptions[row] = ", ".join(parts)
    return descriptions


def _describe_changes(changes: dict[str, dict[str, None]], n_extra: int, base: str) -> list[str]:
    """The first changed settings with their values, and how many more there are."""
    # stable: else as they are written
    keys = sorted(changes, key=lambda key: not key.endswith(".name"))
    parts = [f"{key}={'|'.join(changes[key])}" for key in keys[:MOST]]
    if len(keys) > MOST:
        parts.append(f"and {len(keys) - MOST} more")
    if n_extra:
        parts.append(f"{n_extra} settings that {base} has not")
    return parts


def _cell(run: FrozenRun) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(value)) for key, value in run.cell.items())
