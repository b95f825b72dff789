"""Check whether a run is finished, without importing torch.

The check uses the run's config, the records on disk and the current data files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.catalogue.declarations import data_state
from runner.catalogue.settings import sign
from runner.compose.expand import ResolvedConfig
from runner.record.facts import list_folder, read
from runner.record.files import warn_damage


def find_finished_run(resolved: ResolvedConfig) -> tuple[ResolvedConfig, dict[str, Any]] | None:
    """Config with the identity of a finished run, and that run's run.json.

    None if there is no such run, or if torch is needed to decide.
    """
    settings = resolved.settings
    if settings.fresh or settings.plugins or settings.device != "cpu":
        return None
    for folder in list_folder(Path(settings.output_dir) / settings.experiment):
        facts = read(folder)
        if facts is None or facts["state"] != "done" or "data" not in facts:
            continue
        if folder.name == sign(resolved.config, facts["data"]):  # a run with the same data
            if not _has_same_data(resolved, facts):
                return None
            warn_damage(folder, facts)
            return resolved.identify(facts["data"]), facts
    return None


def _has_same_data(resolved: ResolvedConfig, facts: dict[str, Any]) -> bool:
    """True if the current data are the data of a record."""
    settings = resolved.settings
    dataset = resolved.config["dataset"]["name"]
    state = data_state(dataset, Path(settings.data_dir), settings.offline)
    if state == "":
        name = dataset if settings.validation is None else f"{dataset}-validation"
        return bool(facts["data"] == name)
    return state is not None and state == facts.get("data_state")
