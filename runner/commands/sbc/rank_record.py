"""Record of a calibration: the config, and the ranks of each data set as soon as it is done."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

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


class RankRecord:
    """Folder of a calibration; one process at a time adds to it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._lock: IO[str] | None = None

    def open(self, facts: dict[str, Any], fresh: bool) -> dict[int, Row]:
        """Lock the folder, write the facts, and return the rows that are there by data set.

        Raises:
            ConfigError: another process adds to it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = try_lock(self.folder / ".lock")
        if self._lock is None:
            raise ConfigError(f"{self.folder}: another process is at this calibration")
        if fresh:
            (self.folder / RANKS).unlink(missing_ok=True)
        write_text(self.folder / FACTS, json.dumps(facts, indent=1) + "\n")
        rows = self.rows()
        # a line that a crash cut short must not be continued
        text = "".join(json.dumps(row) + "\n" for row in rows.values())
        write_text(self.folder / RANKS, text)
        return rows

    def rows(self) -> dict[int, Row]:
        """Rows by data set; a broken line is left out."""
        return {row["data_set"]: row for row in read_lines(self.folder, RANKS, {"data_set": int})}

    def add(self, row: Row) -> None:
        """Append a row, on the disk when this returns."""
        with (self.folder / RANKS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
