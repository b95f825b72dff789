"""Which runs of a study ``--only`` leaves."""

from __future__ import annotations

from runner.errors import ConfigError, nearest
from runner.study.snapshot import FrozenRun, Snapshot


def facts(snapshot: Snapshot, run: FrozenRun) -> dict[str, str]:
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


def select_runs(snapshot: Snapshot, only: list[str]) -> list[FrozenRun]:
    """The runs that ``--only key=value,…`` leaves, each signature once.

    Raises:
        ConfigError: a key that no run has, or nothing is left.
    """
    every = [run for run in snapshot.runs if not run.refused]
    facts_by_run = {id(run): facts(snapshot, run) for run in every} if only else {}
    runs = every
    for text in only:
        key, values = _split_choice(text)
        if lacking := next(
            (run_facts for run_facts in facts_by_run.values() if key not in run_facts), None
        ):
            raise ConfigError(f"--only {key}=…: no such key{nearest(key, lacking)}")
        selection = split_values(
            values, {run_facts[key] for run_facts in facts_by_run.values()}, text
        )
        runs = [run for run in runs if facts_by_run[id(run)][key] in selection]
        if not runs:
            raise ConfigError(
                f"--only {text}: no run left; each --only keeps some of what the one before has left"
            )
    return list({run.signature: run for run in runs}.values())


def refused_among(snapshot: Snapshot, only: list[str]) -> list[FrozenRun]:
    """Requested runs that cannot be composed.

    A run is left out if it is not known to be requested.
    """
    facts_by_run = {id(run): facts(snapshot, run) for run in snapshot.runs} if only else {}
    runs = [run for run in snapshot.runs if run.refused]
    for text in only:
        key, values = _split_choice(text)
        selection = split_values(
            values,
            {run_facts[key] for run_facts in facts_by_run.values() if key in run_facts},
            text,
        )
        runs = [run for run in runs if facts_by_run[id(run)].get(key) in selection]
    return runs


def split_values(values: str, known: set[str], text: str) -> set[str]:
    """The values in a list with commas; some may contain commas ("mMDGP, tuned").

    Raises:
        ConfigError: one of them is not among the ``known``.
    """
    pieces = values.split(",")
    matches = set()
    while pieces:
        ends = [end for end in range(len(pieces), 0, -1) if ",".join(pieces[:end]) in known]
        if not ends:
            raise ConfigError(f"--only {text}: no run has {pieces[0]}{nearest(pieces[0], known)}")
        matches.add(",".join(pieces[: ends[0]]))
        pieces = pieces[ends[0] :]
    return matches


def _split_choice(text: str) -> tuple[str, str]:
    key, equals, values = text.partition("=")
    if not equals:
        raise ConfigError(f"--only {text}: write a key and its values, --only model=igp")
    return key, values
