"""Tables that a posterior writes to the folder of its run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def write_tables(folder: Path, tables: Mapping[str, pd.DataFrame]) -> list[Path]:
    """Write each table as ``tables/<name>.csv`` in the folder of a run.  Returns the written
    paths."""
    paths = []
    for name, table in tables.items():
        path = folder / "tables" / f"{name}.csv"
        path.parent.mkdir(exist_ok=True)
        table.to_csv(path, index=False)
        paths.append(path)
    return paths
