"""Selection of a study's runs with ``--only``: ``KEY=VALUE`` pairs that must all match."""

from __future__ import annotations

import re
from pathlib import Path

from runner.catalogue.list_and_show import choose_components
from runner.errors import ConfigError, nearest
from runner.study.definition import StudyDefinition
from runner.study.plan import plan
from runner.study.snapshot import FrozenRun, Snapshot
from runner.terminal.arguments import Parser

GRAMMAR = "commas separate KEY=VALUE pairs, | separates values of a key"
PAIR_PATTERN = re.compile(r"\s*([\w.]+)\s*=")  # start of a pair; a value may contain "=" too

Facts = dict[str, str]
Choice = dict[str, set[str]]  # values by key


def add_only(parser: Parser) -> None:
    """Add the option ``--only``."""
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="KEY=VALUE,…",
        help="only runs that match all pairs: model=igp|smdgp,preset=tuned; "
        "keys: model, preset, row, label, dataset, inference and keys of the grid",
    )


def facts(snapshot: Snapshot, run: FrozenRun) -> Facts:
    """Facts of a run for ``--only``; a run that cannot be composed has only its components."""
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
    cell = {key: str(value) for key, value in run.cell.items()}
    return properties | cell | {key.split(".")[-1]: value for key, value in cell.items()}


def plan_selected_runs(
    study: StudyDefinition, extra: list[str], only: list[str]
) -> list[FrozenRun]:
    """Runs selected by ``--only``, before they are composed, which takes a second per 20 runs.

    Raises:
        ConfigError: see ``choose``.
    """
    runs = []
    for planned in plan(study, extra):
        names = choose_components(planned.overrides)
        experiment = study.recorded_under or names.get("experiment") or study.name
        config = {role: {"name": name} for role, name in names.items()}
        facts = (planned.name, planned.row, planned.cell, planned.overrides, experiment)
        runs.append(FrozenRun(*facts, config=config))
    return choose(Snapshot(study.name, study, "", "", extra, runs, Path()), only)


def select_runs(snapshot: Snapshot, only: list[str]) -> list[FrozenRun]:
    """Runs selected by ``--only``, each signature once.

    Raises:
        ConfigError: a key or a value is unknown, or no run matches.
    """
    runs = [run for run in choose(snapshot, only) if not run.refused]
    return list({run.signature: run for run in runs}.values())


def refused_among(snapshot: Snapshot, only: list[str]) -> list[FrozenRun]:
    """Requested runs that cannot be composed, selected by their known facts."""
    return [run for run in choose(snapshot, only) if run.refused]


def choose(snapshot: Snapshot, only: list[str]) -> list[FrozenRun]:
    """Runs selected by ``--only``, including those that cannot be composed.

    Every key must have one of its values; repeating a key adds values.

    Raises:
        ConfigError: a key or a value is unknown, or no run matches.
    """
    if not only:
        return list(snapshot.runs)
    run_facts = [facts(snapshot, run) for run in snapshot.runs]
    wanted: Choice = {}
    for text in only:
        for key, values in parse_choice(text, run_facts).items():
            wanted.setdefault(key, set()).update(values)
    runs = [
        run
        for run, facts_of_run in zip(snapshot.runs, run_facts, strict=True)
        if all(facts_of_run.get(key) in values for key, values in wanted.items())
    ]
    if not runs:
        raise ConfigError(f"--only {' --only '.join(only)}: no run matches all pairs; {GRAMMAR}")
    return runs


def parse_choice(text: str, run_facts: list[Facts]) -> Choice:
    """Values of each key in ``model=igp|smdgp,preset=tuned``.

    A comma separates values too, as in ``steps=0,2``, unless a value contains it.

    Raises:
        ConfigError: a key or a value is unknown.
    """
    keys = list(dict.fromkeys(key for facts_of_run in run_facts for key in facts_of_run))
    names = "|".join(map(re.escape, keys))
    chosen: Choice = {}
    for pair in re.split(rf",(?=\s*(?:{names})\s*=)", text):
        key, equals, values = pair.partition("=")
        key = key.strip()
        choices = list(
            dict.fromkeys(facts_of_run[key] for facts_of_run in run_facts if key in facts_of_run)
        )
        if not equals or not choices:
            raise _unknown_key(text, pair, keys)
        for words in values.split("|"):
            for value in [words.strip()] if words.strip() in choices else words.split(","):
                if value.strip() not in choices and PAIR_PATTERN.match(value):
                    raise _unknown_key(text, value, keys)
                if value.strip() not in choices:
                    near = nearest(value.strip(), choices)
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
    return ConfigError(f"--only {text}: unknown key{near}; keys: {', '.join(keys)}; {GRAMMAR}")
