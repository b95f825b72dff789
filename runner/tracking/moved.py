"""Support for an output folder that was moved.

MLflow's own store keeps full paths of the files next to it; they are updated here.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

FOLDER = "mlartifacts"


def follow(output_dir: Path) -> None:
    """Makes experiments and runs of the folder's own store keep their files in that folder,
    wherever it lies now."""
    file = output_dir / "mlflow.db"
    here = (output_dir / FOLDER).resolve().as_uri()
    if not file.exists():
        return
    with closing(sqlite3.connect(file, timeout=30)) as store, store:
        tables = {
            name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if not {"experiments", "runs"} <= tables:
            return
        places = store.execute(
            "SELECT DISTINCT artifact_location FROM experiments WHERE artifact_location LIKE ?",
            (f"file://%/{FOLDER}",),
        ).fetchall()
        for (before,) in places:
            if before == here:
                continue
            store.execute(
                "UPDATE experiments SET artifact_location = ? WHERE artifact_location = ?",
                (here, before),
            )
            store.execute(
                "UPDATE runs SET artifact_uri = ? || substr(artifact_uri, ?) WHERE substr(artifact_uri, 1, ?) = ?",
                (here, len(before) + 1, len(before) + 1, f"{before}/"),
            )
