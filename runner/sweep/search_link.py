"""``optuna.json`` in a sweep's folder, which links to the folder of its search."""

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
    """Write a link to the folder of a search into the folder of the current sweep."""
    if os.environ.get(SWEEP_VARIABLE) and (sweep := Path(os.environ[SWEEP_VARIABLE])).is_dir():
        write_text(sweep / LINK, json.dumps({"folder": os.path.relpath(folder, sweep)}))


def read_best(sweep: Path) -> tuple[Path, dict[str, Any]] | None:
    """Folder of a sweep's search and its ``best.yaml``; None without a search.

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
            f"{link}: invalid link to a search; remove the file, or repeat the sweep"
        ) from None
    if not (folder / BEST).is_file():
        return None
    return folder, load_untrusted(folder / BEST)
