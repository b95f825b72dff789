"""Records as tidy frames: ``runs`` with a row per run, and the values of one run with a row per value."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from warnings import warn

from typing_extensions import TypedDict

from runner.disk import conf_folders
from runner.errors import ConfigError, RunnerWarning, nearest
from runner.python.words import flat, refuse_too_large
from runner.record import folders
from runner.record.facts import (
    CHOSEN_ROLES,
    Facts,
    RunState,
    read_config,
    read_facts_or_warn,
)
from runner.record.lines import readable_lines
from runner.record.scores import list_scores, read_newest
from runner.statistics.standard_error import mean_columns

if TYPE_CHECKING:
    import pandas as pd


class RunRow(TypedDict):
    """A run in the table of runs, apart from its settings and scores."""

    id: str
    experiment: str
    dataset: str | None
    model: str | None
    inference: str | None
    attacker: str | None
    seed: int
    replicates: int
    state: RunState
    smoke: bool
    started: str
    seconds: float | None
    record: str


COLUMNS = tuple(RunRow.__annotations__)
Row = dict[str, Any]
LINES = ("replicate", "step", "phase", "metric", "value")


def recorded_values(folder: Path) -> pd.DataFrame:
    """Recorded values of a run: replicate, step, phase, metric, value."""
    import pandas as pd

    rows = [
        (line.replicate, line.step, line.phase, metric, value)
        for line in list_scores(readable_lines(folder))
        for metric, value in line.values.items()
    ]
    return pd.DataFrame(rows, columns=list(LINES)).sort_values(
        ["replicate", "step"], kind="stable", ignore_index=True
    )


def runs(
    output_dir: str | PathLike[str] = "outputs",
    *,
    settings: Iterable[str] = (),
    parts: bool = False,
    **filters: Any,
) -> pd.DataFrame:
    """Table of the runs recorded in a folder.

    Args:
        output_dir: folder of the records.
        settings: keys of the config to add as columns.
        parts: add the scores of parts (``rmse/task``).
        **filters: a column or a key of the config, with a required value or a list of allowed
            values; dicts as in ``run``; of ``id`` the beginning.

    Returns:
        One row per run, by time of start: id, experiment, dataset, model, inference, attacker,
        seed, replicates, state, smoke, started, seconds, record (its folder), and for every
        score the mean over replicates (``rmse``) and its standard error (``rmse_se``); an
        unfinished run has the scores of its last evaluation.

    Raises:
        ConfigError: a filter or a setting is not in any run, or a state or a component does not
            exist.

    Example:
        >>> from runner import run, runs
        >>> result = run("cavi_probit", "steps=20", replicates=2, smoke=True, tracking=False)
        >>> table = runs(state="done", model={"prior_scale": 1.0}, settings=["steps"])
        >>> table[["inference", "replicates", "steps"]]
          inference  replicates  steps
        0      cavi           2     20
        >>> len(runs(inference={"name": ["sgld", "gibbs"]}))
        0
    """
    settings = list(settings)
    return to_frame(list_rows(folders.runs(Path(output_dir)), settings, parts, filters), settings)


def to_frame(rows: list[Row], settings: list[str]) -> pd.DataFrame:
    """Frame of the rows of runs; without rows it has the columns of every run."""
    import pandas as pd

    return pd.DataFrame(rows, columns=None if rows else [*COLUMNS, *settings])


def list_rows(
    records: Iterable[Path], settings: list[str], parts: bool, filters: dict[str, Any]
) -> list[Row]:
    """Rows of records by time of start; arguments and errors as in ``runs``, ``records`` are folders
    of runs."""
    refuse_too_large(filters)
    conditions = dict(flat(filters))
    ask_config = [name for name in [*conditions, *settings] if name not in COLUMNS]
    rows = []
    config_keys = set[str]()
    for folder in records:
        facts = read_facts_or_warn(folder)
        if facts is None:
            continue
        values = _values_or_warn(folder) if ask_config else {}
        if values is None:
            continue
        config_keys |= values.keys()
        row = {"id": facts["signature"], **facts["choice"], "record": str(folder)}
        row = {name: row.get(name, facts.get(name)) for name in COLUMNS}
        if all(
            _is_wanted(row.get(key, values.get(key)), wanted, key == "id")
            for key, wanted in conditions.items()
        ):
            rows.append(
                row | {key: values.get(key) for key in settings} | _scores(folder, facts, parts)
            )
    _refuse_unknown_names(conditions, has_runs=bool(rows))
    for name in ask_config if config_keys else ():
        if name not in config_keys:
            raise ConfigError(
                f"runs: {name}: unknown setting{nearest(name, [*COLUMNS, *config_keys])}"
            )
    return sorted(rows, key=lambda row: row["started"] or "")


def _values_or_warn(folder: Path) -> Facts | None:
    """Settings of a record by dotted key; a nested component's key has its name.

    None, after a warning, if they cannot be read.
    """
    try:
        return dict(flat(read_config(folder)))
    except ConfigError as error:
        warn(f"skipped: {error}", RunnerWarning, stacklevel=3)
    return None


def _refuse_unknown_names(conditions: Facts, *, has_runs: bool) -> None:
    """Check states and components in filters that no run has.

    Raises:
        ConfigError: a name does not exist; the message gives the nearest one.
    """
    for column in conditions.keys() & {"state", *CHOSEN_ROLES}:
        name = conditions[column]
        existing = get_args(RunState) if column == "state" else conf_folders.names(column)
        if isinstance(name, str) and name not in existing and not has_runs:
            raise ConfigError(f"runs: {column}={name}: no such {column}{nearest(name, existing)}")


def _is_wanted(value: Any, wanted: Any, is_id: bool) -> bool:
    """True if a value equals the requested one or is in the requested list; the beginning of an id
    is sufficient.
    """
    several = wanted if isinstance(wanted, list | tuple | set | range) else [wanted]
    if is_id:
        return str(value).startswith(tuple(map(str, several)))
    return value == wanted or value in several


def _scores(folder: Path, facts: Facts, parts: bool) -> dict[str, float]:
    """Mean and standard error of each score."""
    scores, _ = read_newest(facts, folder)
    shown = {name: each for name, each in scores.items() if parts or "/" not in name}
    return mean_columns(shown, "_se")
