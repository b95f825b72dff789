"""Files of a finished run, flushed to disk and listed with size and checksum in run.json."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from components.errors import list_names
from runner.disk.atomic import sync
from runner.disk.inside import is_inside
from runner.disk.plain_file import open_plain
from runner.errors import RunnerWarning, display_path

# output folders of a run; checkpoints have their own checksums
FOLDERS = ("figures", "tables", "predictions", "outcomes")
FILES = ("config.yaml", "metrics.jsonl", "references.bib")


def list_files(folder: Path, names: Iterable[str], folders: Iterable[str] = FOLDERS) -> list[Path]:
    """Existing files with these names, and those below these folders, of a record."""
    listed = [folder / name for name in names]
    listed += [path for name in folders for path in sorted((folder / name).rglob("*"))]
    return [path for path in listed if path.is_file()]


def sync_files(folder: Path, artefacts: list[str]) -> None:
    """Flush the files of a run and their folders to disk."""
    files = list_files(folder, [*FILES, *artefacts])
    for path in {*files, *(file.parent for file in files), folder}:
        sync(path)


def digest_files(folder: Path, artefacts: list[str]) -> dict[str, list[Any]]:
    """Size in bytes and SHA-256 of each file of a run, by path in the folder."""
    files = list_files(folder, [*FILES, *artefacts])
    return {str(path.relative_to(folder)): _digest(path, True) for path in files}


def _digest(path: Path, hashes: bool) -> list[Any]:
    with open_plain(path) as file:
        digests = [hashlib.file_digest(file, "sha256").hexdigest()] if hashes else []
        return [os.fstat(file.fileno()).st_size, *digests]


def find_damage(folder: Path, facts: dict[str, Any], hashes: bool = False) -> Iterator[str]:
    """Files of a finished run with a wrong size or, with ``hashes``, wrong content.

    The file of a posterior may be absent together with the checkpoints, as in an archive.
    """
    for name, written in facts.get("files", {}).items() if facts["state"] == "done" else ():
        try:
            path = folder / name
            is_equal = is_inside(folder, path) and _digest(path, hashes) == written[: 1 + hashes]
        except (OSError, ValueError, TypeError):
            is_equal = name in facts.get("artefacts", ()) and not (folder / "checkpoints").exists()
        if not is_equal:
            yield name


def warn_damage(folder: Path, facts: dict[str, Any], hashes: bool = False) -> None:
    """Warn of damaged files of a finished run, with the command that restores them."""
    damaged = list(find_damage(folder, facts, hashes))
    if damaged:
        place = display_path(folder)
        warnings.warn(
            f"{place}: {list_names(damaged, 1)} is damaged; repeat the run with "
            f"runner resume {place} --fresh, or its command with fresh=true",
            RunnerWarning,
            stacklevel=1,
        )
