"""Data of suites next to their YAML: kept scores and predictions, as compressed CSV.

``conf/arena/<suite>.gold.csv.gz`` has the predictions of the gold row, the reference for the
predictions of other rows: a line for each test row of a problem with the label, and mean and
standard deviation of the gold row's predictive distribution, in the units of the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from runner.arena.suite import GROUP, Suite
from runner.disk import conf_folders
from runner.errors import ConfigError
from runner.report.scores.distances import PREDICTIONS

COLUMNS = ["problem", *PREDICTIONS]
ENDING = "gold.csv.gz"


def stored_file(name: str | None, ending: str = "csv.gz") -> Path | None:
    """Path for the data of a suite; None if the suite has no YAML."""
    path = conf_folders.find(GROUP, name) if name else None
    return path and path.with_name(f"{name}.{ending}")


def read_stored(
    path: Path | None,
    types: Mapping[str, type],
    check: Callable[[pd.DataFrame], pd.DataFrame],
    empty: pd.DataFrame,
) -> pd.DataFrame:
    """Validated content of a file with the given column types; numbers have full precision.
    ``empty`` if there is no file.

    Raises:
        ConfigError: the file is damaged.
    """
    if path is None or not path.is_file():
        return empty
    try:
        table = pd.read_csv(
            path,
            dtype=types,
            na_values=["", "nan"],
            keep_default_na=False,
            float_precision="round_trip",
        )
        return check(table)
    except (OSError, EOFError, ValueError, KeyError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}); restore the original file") from None


def load_gold(suite: Suite) -> pd.DataFrame:
    """Kept predictions of a suite (problem, label, mean, sd); empty if there are none.

    Raises:
        ConfigError: the file is damaged.
    """
    types = dict.fromkeys(PREDICTIONS, float)
    return read_stored(
        stored_file(suite.name, ENDING),
        {"problem": str},
        lambda table: table[COLUMNS].astype(types),
        pd.DataFrame(columns=COLUMNS),
    )
