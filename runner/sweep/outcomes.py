"""Outcomes of the jobs of a sweep.

Each job, in any process and on any machine, writes a small file in the sweep's folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runner.disk.atomic import write_text
from runner.disk.conf_folders import restore_on_exit
from runner.disk.plain_file import parse_json
from runner.errors import ConfigError
from runner.record.facts import list_folder, skip_unreadable

SWEEP_VARIABLE = "RUNNER_SWEEP"  # the sweep's folder, passed to jobs by all launchers
SWEPT_KEYS_VARIABLE = "RUNNER_SWEPT"  # keys in which the jobs differ
JOBS_FOLDER = "jobs"  # subfolder for the files


@dataclass(frozen=True)
class JobOutcome:
    """Outcome of a job: overrides, exit code, error, and folder of the record."""

    number: int
    overrides: list[str]
    code: int
    message: str
    folder: Path | None

    @property
    def state(self) -> str:
        if self.code > 128:
            return "interrupted"
        if self.code:
            return "failed"
        return "pruned" if self.message.startswith("pruned") else "done"

    def values(self) -> dict[str, str]:
        """Overrides by key; the last value of a key takes precedence, and ``~attacker`` becomes
        ``attacker=null``.
        """
        words = [
            f"{word[1:].partition('=')[0]}=null" if word.startswith("~") else word
            for word in self.overrides
        ]
        return {key.lstrip("+"): value for key, _, value in (word.partition("=") for word in words)}


def note(outcome: JobOutcome) -> None:
    """Write the outcome of a job that belongs to a sweep."""
    if not os.environ.get(SWEEP_VARIABLE):
        return
    sweep = Path(os.environ[SWEEP_VARIABLE])
    (sweep / JOBS_FOLDER).mkdir(parents=True, exist_ok=True)
    where = None if outcome.folder is None else os.path.relpath(outcome.folder, sweep)
    facts = vars(outcome) | {"folder": where}
    write_text(sweep / JOBS_FOLDER / f"{outcome.number}.json", json.dumps(facts, indent=1))


def read_outcomes(sweep: Path) -> list[JobOutcome]:
    """Outcomes written so far by the jobs of a sweep, in the order of the jobs.

    Raises:
        ConfigError: a file is damaged.
    """
    outcomes = []
    for path in list_folder(sweep / JOBS_FOLDER):
        if path.suffix != ".json":
            continue
        with skip_unreadable(path):
            outcomes.append(_read_outcome(path, sweep))
    return sorted(outcomes, key=lambda outcome: outcome.number)


def _read_outcome(path: Path, sweep: Path) -> JobOutcome:
    try:
        facts = parse_json(path.read_text(encoding="utf-8"))
        folder = facts["folder"] and Path(os.path.normpath(sweep / facts["folder"]))
        return JobOutcome(**facts | {"folder": folder})
    except (ValueError, TypeError, KeyError):
        raise ConfigError(
            f"{path}: invalid outcome of a sweep's job; remove the file, or repeat the sweep"
        ) from None


@contextmanager
def announce_sweep(folder: Path, keys: list[str]) -> Iterator[None]:
    """Context that passes the sweep's folder and the swept keys to jobs in the environment."""
    environment = {SWEEP_VARIABLE: str(folder), SWEPT_KEYS_VARIABLE: ",".join(keys)}
    with restore_on_exit(*environment):
        os.environ.update(environment)
        yield


def title(number: int, overrides: list[str]) -> str:
    """Title of a sweep's job: its number and its distinguishing overrides."""
    keys = set(filter(None, os.environ.get(SWEPT_KEYS_VARIABLE, "").split(",")))
    apart = [word for word in overrides if word.partition("=")[0].lstrip("+~") in keys]
    return f"job {number}: {', '.join(apart or overrides)}"
