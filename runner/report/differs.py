"""Differences between a row of a study and its reference row.

They are the settings of its runs that differ from the runs in the same cell.
"""

from __future__ import annotations

from runner.record.compare import flat
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
    found: dict[str, dict[str, dict[str, None]]] = {}
    own: dict[str, set[str]] = {}
    for run in snapshot.runs:
        other = theirs.get(_cell(run))
        if run.row == base or run.refused or other is None:
            continue
        config = flat(run.config)
        for key, value in config.items():
            if key not in other:
                own.setdefault(run.row, set()).add(key)
            elif other[key] != value:
                found.setdefault(run.row, {}).setdefault(key, {})[value] = None
    told = {}
    for row in dict.fromkeys(run.row for run in snapshot.runs if run.row != base):
        # stable: else as they are written
        keys = sorted(found.get(row, {}), key=lambda key: not key.endswith(".name"))
        said = [f"{key}={'|'.join(found[row][key])}" for key in keys[:MOST]]
        if len(keys) > MOST:
            said.append(f"and {len(keys) - MOST} more")
        if row in own:
            said.append(f"{len(own[row])} settings that {base} has not")
        if said:
            told[row] = ", ".join(said)
    return told


def _cell(run: FrozenRun) -> tuple[tuple[str, str], ...]:
    return tuple((key, str(value)) for key, value in run.cell.items())
