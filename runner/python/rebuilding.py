"""The job of a record, put together again from its config."""

from __future__ import annotations

from pathlib import Path

from runner.compose.config import Job, prepare
from runner.plugins import refuse_unknown_modules
from runner.resume import read_run_config


def rebuild_job(folder: Path, data_dir: str | None) -> Job:
    """Job of a record's run, ready to be loaded again.

    Users' code is imported only if the caller has already imported it.

    Raises:
        ConfigError: its config is damaged, or names modules that are not imported, or its
            data are missing.
    """
    import sys

    from runner.compose import guard

    cfg, experiment, modules = read_run_config(folder / "config.yaml")
    unknown = [module for module in modules if module not in sys.modules]
    refuse_unknown_modules(unknown, f"the record {folder}", f"import {', '.join(unknown)} first,")
    cfg.output_dir = str(folder.parent.parent)
    if data_dir is not None:
        cfg.data_dir = data_dir
    with guard.within():
        return prepare(cfg, experiment, None)
