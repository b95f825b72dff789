"""The job of a record, put together again from its config."""

from __future__ import annotations

from pathlib import Path

from runner.compose.config import Job, prepare
from runner.plugins import refuse_unknown
from runner.resume import config_of


def job_of(folder: Path, data_dir: str | None) -> Job:
    """What a record's run did, ready to be loaded again; code of others is imported where the caller has done so already.

    Raises:
        ConfigError: its config is damaged, or names modules that nobody has imported, or its data are gone.
    """
    import sys

    from runner.compose import guard

    cfg, experiment, modules = config_of(folder / "config.yaml")
    unknown = [module for module in modules if module not in sys.modules]
    refuse_unknown(unknown, f"the record {folder}", f"import {', '.join(unknown)} first,")
    cfg.output_dir = str(folder.parent.parent)
    if data_dir is not None:
        cfg.data_dir = data_dir
    with guard.within():
        return prepare(cfg, experiment, None)
