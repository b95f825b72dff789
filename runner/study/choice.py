"""Runs of a study that ``--only`` selects: ``KEY=VALUE`` pairs that must all hold."""

from __future__ import annotations

import re
from pathlib import Path

from runner.errors import ConfigError, nearest
from runner.study.definition import StudyDefinition
from runner.study.plan import plan
from runner.study.snapshot import FrozenRun, Snapshot, choose_components

ONLY_HELP = (
    "only runs for which all pairs hold: model=igp|smdgp,preset=tuned; "
    "keys: model, preset, row, label, dataset, inference and keys of the grid"
)
GRAMMAR = "commas separate KEY=VALUE pairs, | separates values of a key"
PAIR_PATTERN = re.compile(r"\s*([\w.]+)\s*=")  # how a pair begins; a value may contain "=" too
SHOWN = 12  # values that an error names

Facts = dict[str, str]


def facts(snapshot: Snapshot, run: FrozenRun) -> Facts:
    """Facts of a run that ``--only`` selects by.

    A run that cannot be composed has no facts except its components.
    """
    row = {row.name: row for row in snapshot.study.rows}[run.row]
    properties = {
        "model": row.model,
        "preset": row.preset,
        "row": row.name,
        "label": row.label,
        "published_row": row.published_label,
    }
    properties |= {} if run.refused else {"experiment": run.experiment}
    properties |= {
        role: run.config[role]["name"] for role in ("dataset", "inference") if role in run.config
    }
    properties |= {key: str(value) for key, value in run.cell.items()}
    return properties | {key.split(".")[-1]: str(value) for key, value in run.cell.items()}


def refuse_unknown_pairs(study: StudyDefinition, extra: list[str], only: list[str]) -> None:
    """Check ``--only`` before the runs are composed, 20 of which take a second.

    Raises:
        ConfigError: as ``choose``.
    """
    runs = []
    for planned in plan(study, extra):
        names = choose_components(planned.overrides)
        experiment = study.recorded_under or names.get("experiment") or study.name
        config = {role: {"name": name} for role, name in names.items()}
        facts = (planned.name, planned.row, planned.cell, planned.overrides, experiment)
        runs.append(FrozenRun(*facts, config=config))
    choose(Snapshot(study.name, study, "", "", extra, runs, Path()), only)


def select_runs(snapshot: Snapshot, only: list[str]) -> list[FrozenRun]:
    """The runs that ``--only`` leaves, each signature once.

    Raises:
        ConfigError: a key or a value that no run has, or nothing is left.
    """
    runs = [run for run in choose(snapshot, only) if not run.refused]
    return list({run.signature: run for run in runs}.values())


def refused_among(snapshot: Snapshot, only: list[str]) -> list[FrozenRun]:
    """Requested runs that cannot be composed.

    A run is left out if it is not known to be requested.
    """
    return [run for run in choose(snapshot, only) if run.refused]


def choose(snapshot: Snapshot, only: list[str]) -> list[FrozenRun]:
    """All runs that ``--only`` leaves, with those that cannot be composed.

    Every key must have one of its values; a key given again adds values.

    Raises:
        ConfigError: a key or a value that no run has, or nothing is left.
    """
    if not only:
        return list(snapshot.runs)
    run_facts = [facts(snapshot, run) for run in snapshot.runs]
    wanted: dict[str, set[str]] = {}
    for text in only:
        for key, values in parse_choice(text, run_facts).items():
            wanted.setdefault(key, set()).update(values)
    runs = [
        run
        for run, own in zip(snapshot.runs, run_facts, strict=True)
        if all(own.get(key) in values for key, values in wanted.items())
    ]
    if not runs:
        raise ConfigError(
            f"--only {' --only '.join(only)}: no run left, all pairs must hold; {GRAMMAR}"
        )
    return runs


def parse_choice(text: str, run_facts: list[Facts]) -> dict[str, set[str]]:
    """The values of each key in ``model=igp|smdgp,preset=tuned``.

    A comma separates values too, as in ``steps=0,2``, unless some value contains it.

    Raises:
        ConfigError: a key or a value that no run has.
    """
    keys = list(dict.fromkeys(key for own in run_facts for key in own))
    names = "|".join(map(re.escape, keys))
    chosen: dict[str, set[str]] = {}
    for pair in re.split(rf",(?=\s*(?:{names})\s*=)", text):
        key, equals, values = pair.partition("=")
        key = key.strip()
        known = list(dict.fromkeys(own[key] for own in run_facts if key in own))
        if not equals or not known:
            raise _unknown_key(text, pair, keys)
        for words in values.split("|"):
            for value in [words.strip()] if words.strip() in known else words.split(","):
                if value.strip() not in known and PAIR_PATTERN.match(value):
                    raise _unknown_key(text, value, keys)
                if value.strip() not in known:
                    near = nearest(value.strip(), known)
                    raise ConfigError(f"--only {text}: no run has {value.strip()}{near}; {GRAMMAR}")
                chosen.setdefault(key, set()).add(value.strip())
    return chosen


def _unknown_key(text: str, piece: str, keys: list[str]) -> ConfigError:
    key, equals, _ = piece.partition("=")
    if not equals:
        return ConfigError(
            f"--only {text}: write KEY=VALUE, such as --only model=igp; "
            f"keys: {', '.join(keys)}; {GRAMMAR}"
        )
    near = nearest(key.strip(), keys)
    return ConfigError(f"--only {text}: no such key{near}; keys: {', '.join(keys)}; {GRAMMAR}")
