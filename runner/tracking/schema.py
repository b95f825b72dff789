"""Schema of an MLflow database file.

The file is created under a temporary name and then renamed, because MLflow creates it in many steps
and permanently refuses a file left incomplete by a killed process.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from runner.disk.atomic import replace_file
from runner.tracking.store import remove_stray_folders, sqlite_uri


def latest_version() -> str:
    """Version required by the installed MLflow."""
    from mlflow.store.db import utils

    return str(utils._get_latest_schema_revision())


def read_schema(file: Path) -> tuple[str | None, int]:
    """Version and number of runs of a database; None and 0 for an unfinished one.

    Raises:
        sqlite3.Error: it is not a database, or another process holds it.
    """
    with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if not {"alembic_version", "runs"} <= tables:
            return None, 0
        query = "SELECT MAX(version_num), (SELECT COUNT(*) FROM runs) FROM alembic_version"
        version, n_runs = database.execute(query).fetchone()
        return version, n_runs


def check_schema(file: Path) -> tuple[int, str, str]:
    """Number of runs of a database, the problem with its schema (empty if none) and the fix.

    Raises:
        sqlite3.Error: see ``read_schema``.
    """
    version, n_runs = read_schema(file)
    if version == latest_version():
        return n_runs, "", ""
    upgrade = (
        f"run mlflow db upgrade sqlite:///{file}, or install the MLflow version that created it"
    )
    problem = f"schema {version or 'unfinished'}, MLflow requires {latest_version()}"
    return n_runs, problem, upgrade if n_runs else "runner sync creates a new one"


def prepare_database(file: Path) -> bool:
    """Create a database, replacing an unfinished or outdated one without runs, which is renamed.

    The caller holds the lock of the store.

    Returns:
        True if a database was replaced, so that the records must be uploaded again.
    """
    from mlflow.store.db import utils

    exists = file.exists()
    version, n_runs = read_schema(file) if exists else (None, 0)
    if n_runs or version == latest_version():
        return False
    with replace_file(file) as temporary, remove_stray_folders(sqlite_uri(temporary)):
        engine = utils.create_sqlalchemy_engine_with_retry(sqlite_uri(temporary))
        utils._initialize_tables(engine)
        engine.dispose()
        if exists:
            file.replace(file.with_name(f"{file.name}.damaged"))
    return exists
