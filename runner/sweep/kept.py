"""A copy of a sweep's trials next to its report, for any database that holds them.

It is ``<output_dir>/sweeps/<study>/trials.journal``.

The folder of a sweep's jobs names it in ``optuna.json``, so that
``runner sweep <folder>`` finds the trials again, on another machine too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from runner.disk.atomic import replace_file, write_text
from runner.disk.plain_file import parse_json
from runner.errors import ConfigError, require_package
from runner.sweep.outcomes import SWEEP_VARIABLE

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import BaseStorage, JournalStorage

JOURNAL_COPY_NAME = "trials.journal"
LINK = "optuna.json"


def _journal(file: Path) -> JournalStorage:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    return JournalStorage(JournalFileBackend(str(file), lock_obj=JournalFileOpenLock(str(file))))


def keep(study: Study, store: BaseStorage, folder: Path) -> None:
    """Writes the copy anew, and the link to it."""
    import optuna

    folder.mkdir(parents=True, exist_ok=True)
    with replace_file(folder / JOURNAL_COPY_NAME) as half:
        optuna.copy_study(
            from_study_name=study.study_name, from_storage=store, to_storage=_journal(half)
        )
    if os.environ.get(SWEEP_VARIABLE) and (sweep := Path(os.environ[SWEEP_VARIABLE])).is_dir():
        write_text(sweep / LINK, json.dumps({"folder": os.path.relpath(folder, sweep)}))


def folder_of(sweep: Path) -> Path | None:
    """Folder of the report of a sweep's study; None if the sweep was not Optuna's."""
    try:
        return Path(
            os.path.normpath(
                sweep / parse_json((sweep / LINK).read_text(encoding="utf-8"))["folder"]
            )
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{sweep / LINK}: not what a sweep writes; remove it, or give the sweep again"
        ) from None


def load(folder: Path) -> Study | None:
    """The study with its trials kept in a folder; None if there is no complete copy."""
    if not (folder / JOURNAL_COPY_NAME).is_file():
        return None
    for package in ("optuna", "plotly"):
        require_package(package, "runner sweep", "sweep")
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    store = _journal(folder / JOURNAL_COPY_NAME)
    names = [study.study_name for study in store.get_all_studies()]
    return optuna.load_study(study_name=names[0], storage=store) if names else None
