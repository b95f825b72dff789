"""Outcomes of the jobs of a sweep, in any process and on any machine.

Each job writes a small file in the sweep's folder.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runner.disk.atomic import write_text
from runner.disk.plain_file import parse_json
from runner.errors import ConfigError
from runner.record.facts import list_folder, skip_unreadable

SWEEP_VARIABLE = "RUNNER_SWEEP"  # names the folder to the jobs, which every launcher hands on
SWEPT_KEYS_VARIABLE = "RUNNER_SWEPT"  # and the keys in which they differ
JOBS_FOLDER = "jobs"  # the folder of these files inside it
TIMESTAMP_FORMAT = "%Y-%m-%d_%H-%M-%S"


@dataclass(frozen=True)
class JobOutcome:
    """One job: what was overridden for it, what its process would exit with, what went wrong, where
    its record is."""

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
        """Overrides by key; the last one has the word, and ``~attacker`` is ``attacker=null``."""
        words = [
            f"{word[1:].partition('=')[0]}=null" if word.startswith("~") else word
            for word in self.overrides
        ]
        return {key.lstrip("+"): value for key, _, value in (word.partition("=") for word in words)}


def note(outcome: JobOutcome) -> None:
    """Writes down how a job ended, if a sweep asked for it."""
    if not os.environ.get(SWEEP_VARIABLE):
        return
    sweep = Path(os.environ[SWEEP_VARIABLE])
    (sweep / JOBS_FOLDER).mkdir(parents=True, exist_ok=True)
    where = None if outcome.folder is None else os.path.relpath(outcome.folder, sweep)
    facts = vars(outcome) | {"folder": where}
    write_text(sweep / JOBS_FOLDER / f"{outcome.number}.json", json.dumps(facts, indent=1))


def read_outcomes(sweep: Path) -> list[JobOutcome]:
    """Outcomes that the jobs of a sweep have written so far, in their order.

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
            f"{path}: not what a job of a sweep writes; remove it, or give the sweep again"
        ) from None


@contextmanager
def announce_sweep_folder(argv: list[str]) -> Iterator[tuple[list[str], Path | None]]:
    """The command line with the sweep's folder in it, and that folder, told to the jobs by an
    environment variable.

    (as it was, None) where the command line is a mistake that Hydra will tell."""
    location = _sweep(argv)
    if location is None:
        yield argv, None
        return
    sweep, keys = location
    quoted = str(sweep).replace("\\", "\\\\").replace("'", "\\'")
    environment = {
        SWEEP_VARIABLE: str(sweep.resolve()),
        SWEPT_KEYS_VARIABLE: ",".join(keys),
    }
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield [*argv, f"hydra.sweep.dir='{quoted}'"], sweep
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def title(number: int, overrides: list[str]) -> str:
    """Title of a sweep's job: its number and its distinguishing overrides, in full."""
    keys = set(filter(None, os.environ.get(SWEPT_KEYS_VARIABLE, "").split(",")))
    apart = [word for word in overrides if word.partition("=")[0].lstrip("+~") in keys]
    return f"job {number}: {', '.join(apart or overrides)}"


def _sweep(argv: list[str]) -> tuple[Path, list[str]] | None:
    """Folder and keys of a sweep.

    The folder is ``hydra.sweep.dir`` as given, or one named by the current second under the
    output folder, in any sweep; the keys are the swept ones.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from runner.compose.compose import compose_in_full

    words = [word for word in argv if not word.startswith("-")]
    try:
        overrides = OverridesParser.create().parse_overrides(words)
        fixed_words = [
            o.input_line or ""
            for o in overrides
            if not o.is_sweep_override() and not o.key_or_group.startswith("hydra")
        ]
        sweep_dirs = [o.value() for o in overrides if o.key_or_group == "hydra.sweep.dir"]
        output_dir = Path(str(compose_in_full(fixed_words).output_dir))
    except (HydraException, OmegaConfBaseException, ConfigError, ValueError):
        return None
    folder = Path(
        str(sweep_dirs[-1])
        if sweep_dirs
        else output_dir / "multirun" / time.strftime(TIMESTAMP_FORMAT)
    ).resolve()
    return folder, [o.key_or_group for o in overrides if o.is_sweep_override()]
