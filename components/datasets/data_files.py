"""Catalogue of the data files, with sizes and checksums, and the folders that hold them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import platformdirs
import yaml

from components.datasets.checksums import mismatch
from components.errors import DamagedFileError, DataUnavailableError

# path, size, time of change of files with a verified checksum
_verified: set[tuple[str, int, int]] = set()


@dataclass(frozen=True)
class DataFile:
    """One line of the catalogue."""

    dataset: str
    path: str  # inside the data folder
    urls: tuple[str, ...]  # empty: a table made from many files, to be put there by hand
    bytes: int
    licence: str
    source: str
    sha256: str | None = None
    content_sha256: str | None = None
    git_blob: str | None = None
    numbers_sha256: str | None = None

    @property
    def checksums(self) -> dict[str, str | None]:
        """Expected checksums by the names of ``checksums.checksum``; one that fits is enough."""
        return {
            "sha256": self.sha256,
            "git blob": self.git_blob,
            "sha256 of the content": self.content_sha256,
            "sha256 of the numbers": self.numbers_sha256,
        }


@cache
def catalogue() -> tuple[DataFile, ...]:
    """Every file that the product can use."""
    sets = yaml.safe_load((Path(__file__).parent / "catalogue.yaml").read_text())
    return tuple(
        DataFile(
            dataset,
            path,
            licence=entry["licence"],
            source=entry["source"],
            **(facts | {"urls": tuple(facts["urls"])}),
        )
        for dataset, entry in sets.items()
        for path, facts in entry["files"].items()
    )


def folders(data_dir: Path) -> tuple[Path, Path]:
    """Folders that are searched for files, in this order."""
    return Path(data_dir), platformdirs.user_cache_path("bayes-runner")


def writable(folder: Path) -> bool:
    """True if files may be put into ``folder`` (which need not exist yet).

    The permission bits count even for root, which could write where the owner of the data
    asked nobody to.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    bits = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
    return folder.is_dir() and bool(folder.stat().st_mode & bits) and os.access(folder, os.W_OK)


def find(data_dir: Path, path: str) -> Path | None:
    """Path of a file, unchecked; None if nowhere."""
    return next((folder / path for folder in folders(data_dir) if (folder / path).is_file()), None)


def find_own_file(
    key: str, path: str, data_dir: Path, fits: Callable[[Path], bool] = Path.is_file
) -> Path:
    """Path of a user's file in the data folder, or from where the runner was started.

    Raises:
        DataUnavailableError: there is none."""
    places = (Path(data_dir) / path, Path(path))
    file = next((place for place in places if fits(place)), None)
    if file is None:
        raise DataUnavailableError(
            f"dataset.{key}={path}: no such file, neither here nor in {Path(data_dir)}"
        )
    return file


def verify_catalogue_file(path: Path, name: str) -> None:
    """Check that a file, in any form, holds the numbers of the catalogue's file ``name``.

    Raises:
        DamagedFileError: it does not.
    """
    verify(path, next(f for f in catalogue() if f.path == name))


def verify(path: Path, file: DataFile) -> None:
    """Check a file's checksum; an unchanged file is not read again by the process.

    Raises:
        DamagedFileError: names the file, the checksum expected and found, and the remedy.
    """
    try:
        status = path.stat()
        key = (str(path), status.st_size, status.st_mtime_ns)
        wrong = None if key in _verified else mismatch(path, file.checksums)
    except OSError as error:
        raise DamagedFileError(
            f"{path}: cannot be read ({error.strerror}); make it readable or remove it"
        ) from None
    if wrong:
        raise DamagedFileError(
            f"{path}: not the file it should be: {wrong}; replace it with `runner data fetch {file.dataset}`, "
            "or remove it, or set data_dir (RUNNER_DATA_DIR) to another folder"
        )
    _verified.add(key)
