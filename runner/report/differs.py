"""Differences between a row of a study and its reference row: settings that differ between runs of
the same cell.
"""

from __future__ import annotations

from collections import defaultdict

from runner.report.compared_record import flat
from runner.study.definition import StudyDefinition
from runner.study.snapshot import Snapshot

MOST = 8  # largest number of settings in a line


def comparison_row(study: StudyDefinition) -> str:
    """Row with which other rows are compared: the reference row, or the first."""
    return study.reference or study.rows[0].name


def differs(snapshot: Snapshot | None) -> dict[str, str]:
    """Settings of each row that differ from the reference row, changed components first.

    A setting has one value per cell if its values differ between cells.  Keys of only one of the
    two rows belong to different components and are only counted.
    """
    if snapshot is None:
        return {}
    base = comparison_row(snapshot.study)
    runs = [run for run in snapshot.runs if not run.refused]
    theirs = {str(run.cell): flat(run.config) for run in runs if run.row == base}
    changes = defaultdict[str, dict[str, dict[str, None]]](dict)
    extra_keys = defaultdict[str, set[str]](set)
    for run in runs:
        other = theirs.get(str(run.cell), {})
        if run.row == base or not other:
            continue
        config = flat(run.config)
        extra_keys[run.row] |= config.keys() - other.keys()
        for key, value in config.items():
            if other.get(key, value) != value:
                changes[run.row].setdefault(key, {})[value] = None
    return {
        row: text
        for row, extra in extra_keys.items()
        if (text := ", ".join(_describe_changes(changes[row], len(extra), base)))
    }


def _describe_changes(changes: dict[str, dict[str, None]], n_extra: int, base: str) -> list[str]:
    """Describe the first changed settings and the number of further ones."""
    # stable sort keeps the order of the config
    keys = sorted(changes, key=lambda key: not key.endswith(".name"))
    parts = [f"{key}={'|'.join(changes[key])}" for key in keys[:MOST]]
    if len(keys) > MOST:
        parts.append(f"and {len(keys) - MOST} more")
    if n_extra:
        parts.append(f"settings that {base} does not have: {n_extra}")
    return parts
