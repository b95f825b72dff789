"""Sizes and checksums of a finished run's files, kept in its run.json."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.disk.inside import is_inside
from runner.disk.plain_file import open_plain
from runner.errors import RunnerWarning, display_path

CHECKED_FOLDERS = ("figures", "tables", "predictions", "outcomes")  # checkpoints have their own
CHECKED_FILES = ("config.yaml", "metrics.jsonl", "references.bib")


def digest_files(folder: Path, artefacts: list[str]) -> dict[str, list[Any]]:
    """Size in bytes and SHA-256 of each file that a run wrote, by its name in the folder."""
    paths = [folder / name for name in (*CHECKED_FILES, *artefacts)]
    paths += [path for name in CHECKED_FOLDERS for path in (folder / name).rglob("*")]
    return {
        path.relative_to(folder).as_posix(): [path.stat().st_size, _sha256(path)]
        for path in sorted(set(paths))
        if path.is_file() and not path.name.startswith(".")
    }


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open_plain(path) as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def find_damage(folder: Path, facts: dict[str, Any], hashes: bool = False) -> Iterator[str]:
    """Files of a finished run that differ from those written, each with the difference.

    Sizes are compared, with ``hashes`` checksums too. A posterior's file may be absent together
    with the checkpoints, as in an archive.
    """
    artefacts = facts.get("artefacts") or []
    for name, written in facts.get("files", {}).items() if facts["state"] == "done" else ():
        path = folder / name
        try:
            size, digest = written
            if not is_inside(folder, path):
                yield f"{name} (leads out of the folder)"
            elif (n_bytes := path.stat().st_size) != size:
                yield f"{name} ({n_bytes} bytes, {size} were written)"
            elif hashes and _sha256(path) != digest:
                yield f"{name} (its SHA-256 differs)"
        except FileNotFoundError:
            if name not in artefacts or (folder / "checkpoints").exists():
                yield f"{name} (missing)"
        except PermissionError:  # another user's: a warning is given where it is read
            continue
        except (OSError, ValueError, TypeError):
            yield f"{name} (cannot be read)"


def damage_message(folder: Path, facts: dict[str, Any], hashes: bool = False) -> str | None:
    """One line that names the damaged files of a finished run, with the fix; None: there are
    none."""
    damaged = list(find_damage(folder, facts, hashes))
    if not damaged:
        return None
    place = display_path(folder)
    more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
    return (
        f"{place}: damaged file: {damaged[0]}{more}; "
        f"runner resume {place} --fresh, or its command with fresh=true, computes the run again"
    )


def warn_damage(folder: Path, facts: dict[str, Any], hashes: bool = False) -> None:
    """Warns of ``damage_message``, once for each message."""
    if message := damage_message(folder, facts, hashes):
        warnings.warn(message, RunnerWarning, stacklevel=1)
