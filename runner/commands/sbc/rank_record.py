"""Record of a calibration: the config, and the ranks of each data set as soon as it is done."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from runner.commands.sbc.fits import RankSettings, Row
from runner.compose.settings import sign
from runner.disk.atomic import write_text
from runner.disk.lock import try_lock
from runner.errors import ConfigError
from runner.record.lines import read_lines

FOLDER = "sbc"  # below the output folder
RANKS = "ranks.jsonl"
FACTS = "sbc.json"


def name_folder(config: dict[str, Any], data: str, settings: RankSettings) -> str:
    """``<inference>-<model>-<dataset>-<hash>``: the hash is of all that ranks depend on."""
    text = json.dumps([sign(config, data), asdict(settings)])
    chosen = [config[role]["name"] for role in ("inference", "model", "dataset")]
    return "-".join([*chosen, hashlib.sha256(text.encode()).hexdigest()[:12]])


@contextmanager
def open_ranks(folder: Path, facts: dict[str, Any], fresh: bool) -> Iterator[dict[int, Row]]:
    """Rows that are there by data set, in a folder to which only this process adds in the context.

    Raises:
        ConfigError: another process adds to it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = try_lock(folder / ".lock")
    if lock is None:
        raise ConfigError(f"{folder}: another process is at this calibration")
    with lock:
        if fresh:
            (folder / RANKS).unlink(missing_ok=True)
        write_text(folder / FACTS, json.dumps(facts, indent=1) + "\n")
        rows = read_rows(folder)
        # a line that a crash cut short must not be continued
        write_text(folder / RANKS, "".join(json.dumps(row) + "\n" for row in rows.values()))
        yield rows


def read_rows(folder: Path) -> dict[int, Row]:
    """Rows by data set; a broken line is left out."""
    return {row["data_set"]: row for row in read_lines(folder, RANKS, {"data_set": int})}


def add_row(folder: Path, row: Row) -> None:
    """Append a row, on the disk when this returns."""
    with (folder / RANKS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())
