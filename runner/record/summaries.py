"""The few facts of a record that are asked of all records of an experiment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from runner.record.facts import list_folder, load_facts, skip_unreadable

STEPS = re.compile(r"^steps: (\d+)$", re.MULTILINE)


class RecordSummary(NamedTuple):
    """Facts of one record."""

    state: str
    choice: dict[str, Any]
    smoke: bool
    has_steps: bool  # False: its config says no number of steps
    rate: float | None  # seconds of a step, or of a replicate without steps; None: not known

    @classmethod
    def read(cls, folder: Path) -> RecordSummary | None:
        """Facts by the files of a record; None: run.json is missing or damaged.

        Raises:
            PermissionError: this user may not read it.
        """
        known = load_facts(folder)
        if known is None:
            return None
        try:
            steps = STEPS.search((folder / "config.yaml").read_text(encoding="utf-8"))
            units = known["replicates"] * (int(steps[1]) if steps else 1)
            rate = None if known.get("taken_over") else known["seconds"] / units or None
        except (OSError, ValueError, KeyError, ZeroDivisionError):
            steps = rate = None
        choice = known.get("choice", {})
        return cls(known["state"], choice, known.get("smoke", False), steps is not None, rate)


def read_summaries(experiment: Path) -> dict[str, RecordSummary]:
    """Facts of the records in an experiment's folder, by the name of the run's folder.

    Damaged records are left out; so are those that this user may not read, with a warning.
    """
    summaries = {}
    for folder in list_folder(experiment):
        with skip_unreadable(folder):
            if summary := RecordSummary.read(folder):
                summaries[folder.name] = summary
    return summaries
