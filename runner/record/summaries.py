"""Summaries of all records of an experiment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from runner.record.facts import list_folder, load_facts, skip_unreadable

STEPS = re.compile(r"^steps: (\d+)$", re.MULTILINE)


class RecordSummary(NamedTuple):
    """Selected facts of a record."""

    state: str
    choice: dict[str, Any]
    smoke: bool
    has_steps: bool  # False if the config does not set the number of steps
    rate: float | None  # seconds per step, or per replicate without steps; None: unknown

    @classmethod
    def read(cls, folder: Path) -> RecordSummary | None:
        """Read the summary of a record; None if run.json is missing or damaged.

        Raises:
            PermissionError: the record is not readable for this user.
        """
        facts = load_facts(folder)
        if facts is None:
            return None
        try:
            steps = STEPS.search((folder / "config.yaml").read_text(encoding="utf-8"))
            units = facts["replicates"] * (int(steps[1]) if steps else 1)
            rate = None if facts.get("taken_over") else facts["seconds"] / units or None
        except (OSError, ValueError, KeyError, ZeroDivisionError):
            steps = rate = None
        choice = facts.get("choice", {})
        return cls(facts["state"], choice, facts.get("smoke", False), steps is not None, rate)


def read_summaries(experiment: Path) -> dict[str, RecordSummary]:
    """Summaries of the records in an experiment's folder, by the name of the run's folder.

    Damaged records are skipped; so are unreadable ones, with a warning.
    """
    summaries = {}
    for folder in list_folder(experiment):
        with skip_unreadable(folder):
            if summary := RecordSummary.read(folder):
                summaries[folder.name] = summary
    return summaries
