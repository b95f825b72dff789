"""Snapshot of a study, frozen when the study is first launched.

The file is ``<output_dir>/studies/<study>/snapshot.yaml``.

It contains the definition, and the overrides, resolved config and signature of each run: later
changes of the YAML do not affect a study in progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from runner.catalogue.plugins import module_name, refuse_unknown_modules
from runner.catalogue.settings import Values
from runner.disk.atomic import write_text
from runner.disk.inside import inside
from runner.disk.read_yaml import load_untrusted
from runner.disk.yaml_comments import Dumper
from runner.disk.yaml_limits import MAX_SNAPSHOT_VALUES
from runner.errors import ConfigError, UnfitError, first_line
from runner.record.facts import Facts, read_facts_or_warn
from runner.record.machine import now
from runner.study.definition import StudyDefinition
from runner.study.plan import PlannedRun, plan
from runner.study.protocol import protocol_parts
from runner.terminal.printer import count_each


@dataclass(frozen=True)
class FrozenRun:
    """A run of a study.

    ``refused`` is the reason why it cannot be composed, in which case it has no config; ``unfit``
    is True if components are incompatible, and ``lacks_data`` if data are not available.
    """

    name: str
    row: str
    cell: dict[str, Any]
    overrides: list[str]
    experiment: str = ""
    signature: str = ""
    data: str = ""
    config: Values = field(default_factory=dict)
    refused: str | None = None
    unfit: bool = False
    lacks_data: bool = False

    @cached_property
    def protocol_parts(self) -> dict[str, str]:
        """Parts shared by the protocols of the run's metrics."""
        return protocol_parts(self.config)


@dataclass(frozen=True)
class Snapshot:
    """A study as launched, with the folder of its records."""

    name: str
    study: StudyDefinition
    taken: str
    git: str
    extra: list[str]
    runs: list[FrozenRun]
    output_dir: Path

    @property
    def plugins(self) -> list[str]:
        """Modules imported by the runs, sorted."""
        return sorted({name for run in self.runs for name in run.config.get("plugins") or []})

    @property
    def file(self) -> Path:
        """File of the snapshot, in the study's folder."""
        return location(self.name, self.output_dir)

    def folder(self, run: FrozenRun) -> Path:
        """Folder of a run's record."""
        return inside(
            inside(self.output_dir, run.experiment, "experiment"), run.signature, "signature"
        )

    def facts(self, run: FrozenRun) -> Facts | None:
        """run.json of a run; None if it has not started."""
        return None if run.refused else read_facts_or_warn(self.folder(run))

    def state(self, run: FrozenRun) -> str:
        """State of a run: refused | not started | pending | running | done | failed | diverged |
        interrupted | pruned."""
        if run.refused:
            return "refused"
        facts = self.facts(run)
        return facts["state"] if facts else "not started"


def location(name: str, output_dir: Path) -> Path:
    """File of a snapshot."""
    return inside(output_dir / "studies", name, "study") / "snapshot.yaml"


def refuse_unnamed_plugins(modules: set[str], name: str) -> None:
    """Refuse plug-ins of a study that are not on the command line.

    Raises:
        ConfigError: a plug-in is not named; the message gives the option.
    """
    refuse_unknown_modules(
        sorted(modules),
        f"study {name}",
        f"give {' '.join(f'--plugin {m}' for m in sorted(modules))}",
    )


def _freeze_run(
    planned: PlannedRun,
    study: StudyDefinition,
    output_dir: Path,
    plugins: list[str],
) -> FrozenRun:
    """Compose and validate a run, as ``runner`` does, with only the given plug-ins.

    A run without an experiment is recorded under the study's name."""
    from components.errors import DamagedFileError, DataUnavailableError
    from runner.compose.compose import compose
    from runner.compose.resolve import resolve, to_container

    facts = (planned.name, planned.row, planned.cell, planned.overrides)
    try:
        composed = compose([*planned.overrides, f"output_dir={output_dir}"])
        named = to_container(composed.cfg).get("plugins")
        if isinstance(named, list):
            refuse_unnamed_plugins({module_name(m) for m in named} - set(plugins), study.name)
            composed.cfg.plugins = [*named, *(m for m in plugins if m not in named)]
        name = study.recorded_under or composed.experiment or study.name
        resolved = resolve(composed._replace(experiment=name))
        from runner.compose.job import build  # imports torch, which errors in keys do not need

        job = build(resolved)
    except (ConfigError, DataUnavailableError) as error:
        why = first_line(error)
        lacks = isinstance(error, DataUnavailableError) and not isinstance(error, DamagedFileError)
        return FrozenRun(*facts, refused=why, unfit=isinstance(error, UnfitError), lacks_data=lacks)
    return FrozenRun(*facts, job.settings.experiment, job.signature, job.data, job.config)


def take(
    study: StudyDefinition,
    name: str,
    extra: list[str],
    output_dir: Path,
    plugins: list[str],
    frozen: Sequence[FrozenRun] = (),
) -> Snapshot:
    """Take a snapshot by composing every run that is not in ``frozen``; ``plugins`` are the modules
    named by the user.

    Raises:
        ConfigError: no run can be composed.
    """
    from runner.record.code import commit

    frozen_runs = {run.name: run for run in frozen}
    runs = [
        frozen_runs.get(planned.name) or _freeze_run(planned, study, output_dir, plugins)
        for planned in count_each("composing", plan(study, extra))
    ]
    if all(run.refused for run in runs):
        why = next(run.refused for run in runs if run.name not in frozen_runs)
        raise ConfigError(f"study {name}: no run can be composed; the first one: {why}")
    return Snapshot(name, study, now(), commit().get("sha", ""), extra, runs, output_dir)


def save(snapshot: Snapshot) -> None:
    """Write snapshot.yaml."""
    content = TypeAdapter(Snapshot).dump_python(snapshot, exclude={"output_dir"})
    snapshot.file.parent.mkdir(parents=True, exist_ok=True)
    write_text(
        snapshot.file, yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True)
    )


def load(name: str, output_dir: Path) -> Snapshot | None:
    """Load the snapshot of a study; None if the study was never launched.

    Raises:
        ConfigError: the file is damaged.
    """
    path = location(name, output_dir)
    if not path.exists():
        return None
    try:
        content = load_untrusted(path, MAX_SNAPSHOT_VALUES, "; take a new one with --fresh")
        placed = content | {"name": name, "output_dir": output_dir}
        return TypeAdapter(Snapshot).validate_python(placed)
    except (TypeError, ValidationError) as error:
        raise ConfigError(
            f"{path}: damaged ({first_line(error)}); take a new one with --fresh"
        ) from None
