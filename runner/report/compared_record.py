"""Content of a record for comparisons: facts, flat config, and the scores of each replicate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from runner.errors import ConfigError
from runner.record.facts import Facts, ScoreLists, flatten, load_facts, read_config
from runner.record.files import warn_damage
from runner.record.scores import read_newest
from runner.terminal.typed_values import format_typed


@dataclass(frozen=True)
class ComparedRecord:
    """Content of a record: facts, flat config, and one value per replicate for each metric."""

    folder: Path
    facts: Facts
    config: dict[str, str]
    result: ScoreLists
    step: int | None  # last evaluation of a run that is not done; None if the result is final

    @property
    def label(self) -> str:
        return str(self.facts["signature"])[:8]


def flat(values: Facts) -> dict[str, str]:
    """Dotted keys with values in YAML syntax."""
    return {
        key: format_typed(value) if value is None or isinstance(value, bool) else str(value)
        for key, value in flatten(values)
    }


def load(folder: Path) -> ComparedRecord:
    """Load a run's record.

    Raises:
        ConfigError: run.json or config.yaml is damaged.
        PermissionError: run.json is not readable for this user.
    """
    hint = "; repeat the run's command"
    try:
        facts = load_facts(folder)
        config = read_config(folder)
    except ConfigError as error:
        raise ConfigError(f"{error}{hint}") from None
    if facts is None:
        raise ConfigError(f"{folder}: its run.json is damaged{hint}")
    warn_damage(folder, facts)
    return ComparedRecord(folder, facts, flat(config), *read_newest(facts, folder))


def describe_machine(hardware: Facts) -> str:
    """GPU of a machine, or its processor."""
    return str(hardware.get("gpu") or hardware.get("cpu") or "")
