"""The schema of an MLflow database file: made and migrated under another name, then renamed.

MLflow migrates in many steps, and refuses for ever a file that a killed process left between two.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from runner.disk.atomic import replace_file
from runner.tracking.store import remove_stray_folders, sqlite_uri

SET_ASIDE_SUFFIX = ".damaged"
JOURNAL_SUFFIXES = ("-journal", "-wal", "-shm")  # sqlite's, next to a database


class Schema(NamedTuple):
    """Schema of a database file."""

    version: str | None  # alembic's revision; None: not recorded
    n_runs: int


def read_schema(file: Path) -> Schema:
    """Schema of a file; no version and no run for a missing, empty or unfinished one.

    Raises:
        sqlite3.Error: it is not a database, or another process holds it.
    """
    if not file.exists():
        return Schema(None, 0)
    with closing(
        sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True, timeout=5)
    ) as database:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        tables = {name for (name,) in database.execute(query)}
        version = n_runs = None
        if "alembic_version" in tables:
            version = database.execute("SELECT version_num FROM alembic_version").fetchone()
        if "runs" in tables:
            (n_runs,) = database.execute("SELECT COUNT(*) FROM runs").fetchone()
    return Schema(version[0] if version else None, n_runs or 0)


def latest_version() -> str | None:
    """Version that the installed MLflow needs, found without importing it."""
    from alembic.script import ScriptDirectory

    spec = find_spec("mlflow")
    if spec is None or spec.origin is None:
        return None
    scripts = Path(spec.origin).parent / "store" / "db_migrations"
    return ScriptDirectory(str(scripts)).get_current_head()


def outdated_message(file: Path) -> str | None:
    """Difference of a file's schema from the installed MLflow's; None: there is none, or no file.

    Raises:
        sqlite3.Error: as ``read_schema``.
    """
    version = read_schema(file).version
    latest = latest_version() if file.exists() else version
    return (
        None
        if version == latest
        else f"schema {version or 'unfinished'}, the installed MLflow needs {latest}"
    )


def prepare_database(file: Path, is_own: bool) -> bool:
    """Makes a missing database; migrates one of an output folder's own to the installed MLflow.

    An own one without runs is set aside, and a new one takes its place. The caller holds the lock
    of the store.

    Returns:
        True if a database was set aside: the records have to be pushed again.
    """
    existed = file.exists()
    if existed and (not is_own or outdated_message(file) is None):
        return False
    from mlflow.store.db import utils

    for path in file.parent.iterdir():  # of killed processes, with their journals
        if path.name.startswith(f".{file.name}."):
            path.unlink(missing_ok=True)
    has_runs = read_schema(file).n_runs > 0
    with replace_file(file) as temporary:
        if has_runs:
            with (
                closing(sqlite3.connect(file, timeout=30)) as source,
                closing(sqlite3.connect(temporary)) as copy,
            ):
                source.backup(copy)
        uri = sqlite_uri(temporary)
        with remove_stray_folders(uri):
            engine = utils.create_sqlalchemy_engine_with_retry(uri)
        (utils._upgrade_db if has_runs else utils._initialize_tables)(engine)
        engine.dispose()
        is_set_aside = existed and not has_runs
        if is_set_aside:
            file.replace(file.with_name(file.name + SET_ASIDE_SUFFIX))
        for suffix in JOURNAL_SUFFIXES:  # of the file before: sqlite would apply them to this one
            with suppress(FileNotFoundError):
                file.with_name(file.name + suffix).unlink()
    return is_set_aside
