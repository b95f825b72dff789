"""Data of suites next to their YAML: kept scores and predictions, as compressed CSV."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from runner.arena.suite import GROUP
from runner.disk import conf_folders
from runner.disk.atomic import write_bytes
from runner.errors import ConfigError


def stored_file(name: str | None, ending: str = "csv.gz") -> Path | None:
    """Where the data of a suite are, or would be; None: the suite has no YAML."""
    path = conf_folders.find(GROUP, name) if name else None
    return path and path.with_name(f"{name}.{ending}")


def read_stored(
    path: Path, types: Mapping[str, type], check: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """The checked contents of a file, of which some columns have these types; numbers have all of
    their digits.

    Raises:
        ConfigError: the file is damaged.
    """
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
        raise ConfigError(
            f"{path}: cannot be read ({error}); put back the file that was there"
        ) from None


def write_stored(table: pd.DataFrame, digits: int, path: Path) -> None:
    """Writes a file, numbers with this many significant digits; the same table gives the same
    bytes."""
    text = table.to_csv(index=False, float_format=f"%.{digits}g", lineterminator="\n")
    write_bytes(path, gzip.compress(text.encode(), 9, mtime=0))
