"""``optuna.json`` in a sweep's folder: it names the folder of the search that the sweep was."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from runner.disk.atomic import write_text
from runner.disk.plain_file import parse_json
from runner.disk.read_yaml import load_untrusted
from runner.errors import ConfigError
from runner.sweep.outcomes import SWEEP_VARIABLE

LINK = "optuna.json"
BEST = "best.yaml"


def link_search(folder: Path) -> None:
    """Writes the link to the folder of a search into the folder of the present sweep."""
    if os.environ.get(SWEEP_VARIABLE) and (sweep := Path(os.environ[SWEEP_VARIABLE])).is_dir():
        write_text(sweep / LINK, json.dumps({"folder": os.path.relpath(folder, sweep)}))


def read_best(sweep: Path) -> tuple[Path, dict[str, Any]] | None:
    """Folder of a sweep's search, and its ``best.yaml``; None: it was no search, or is not there.

    Raises:
        ConfigError: a file is damaged.
    """
    link = sweep / LINK
    if not link.exists():
        return None
    try:
        folder = Path(os.path.normpath(sweep / parse_json(link.read_text())["folder"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise ConfigError(
            f"{link}: not what a sweep writes; remove it, or give the sweep again"
        ) from None
    if not (folder / BEST).is_file():
        return None
    return folder, load_untrusted(folder / BEST)
