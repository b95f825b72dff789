"""Runs of a study with their records, each read once for all tables, figures and pages of a report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from runner.disk.inside import is_inside
from runner.record.checks import Kept, combine_checks
from runner.record.facts import Facts, is_readable
from runner.report.compared_record import flat
from runner.study.snapshot import FrozenRun, Snapshot


@dataclass(frozen=True)
class RunView:
    """A run and its record."""

    run: FrozenRun
    facts: Facts  # empty if it was not started
    folder: Path | None  # None if it was refused

    @property
    def state(self) -> str:
        """State of the record, or the reason why it is missing."""
        return str(self.facts.get("state", "refused" if self.run.refused else "not started"))

    @cached_property
    def config(self) -> dict[str, str]:
        """Config of the run by dotted key."""
        return flat(self.run.config)

    @property
    def checks(self) -> list[Kept]:
        """Checks of the run, combined over replicates."""
        return combine_checks(self.facts)

    @property
    def pictures(self) -> list[Path]:
        """Figures in the record; links to files elsewhere are excluded."""
        folder = self.folder
        return [
            path
            for path in sorted(folder.glob("figures/*.png") if folder else ())
            if folder and path.is_file() and is_inside(folder, path) and is_readable(path)
        ]


def run_views(snapshot: Snapshot | None) -> list[RunView]:
    """All runs of a study; none if it was never launched."""
    if snapshot is None:
        return []
    return [
        RunView(run, snapshot.facts(run) or {}, snapshot.folder(run) if run.signature else None)
        for run in snapshot.runs
    ]
