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

# path, size and modification time of verified files
_verified: set[tuple[str, int, int]] = set()


@dataclass(frozen=True)
class DataFile:
    """One line of the catalogue."""

    dataset: str
    path: str  # inside the data folder
    urls: tuple[str, ...]  # empty for a table made from many files, to be copied by hand
    bytes: int
    licence: str
    source: str
    sha256: str | None = None
    content_sha256: str | None = None
    git_blob: str | None = None
    numbers_sha256: str | None = None

    @property
    def checksums(self) -> dict[str, str | None]:
        """Expected checksums by the names of ``checksums.checksum``; one match is enough."""
        return {
            "sha256": self.sha256,
            "git blob": self.git_blob,
            "sha256 of the content": self.content_sha256,
            "sha256 of the numbers": self.numbers_sha256,
        }


@cache
def catalogue() -> tuple[DataFile, ...]:
    """All files of the catalogue."""
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
    """Folders that are searched for files, in order."""
    return Path(data_dir), platformdirs.user_cache_path("bayes-runner")


def writable(folder: Path) -> bool:
    """True if ``folder``, which need not exist yet, is writable.

    Permission bits are respected even for root, so that read-only data stay unchanged.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    bits = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
    return folder.is_dir() and bool(folder.stat().st_mode & bits) and os.access(folder, os.W_OK)


def find(data_dir: Path, path: str) -> Path | None:
    """Path of a file, unchecked; None if it does not exist."""
    return next((folder / path for folder in folders(data_dir) if (folder / path).is_file()), None)


def find_own_file(
    key: str, path: str, data_dir: Path, fits: Callable[[Path], bool] = Path.is_file
) -> Path:
    """Path of a user's file in the data folder or the working directory.

    Raises:
        DataUnavailableError: the file does not exist."""
    places = (Path(data_dir) / path, Path(path))
    file = next((place for place in places if fits(place)), None)
    if file is None:
        raise DataUnavailableError(
            f"dataset.{key}={path}: the file does not exist here or in {Path(data_dir)}"
        )
    return file


def verify_catalogue_file(path: Path, name: str) -> None:
    """Check that a file in any format holds the numbers of the catalogue's file ``name``.

    Raises:
        DamagedFileError: the numbers differ.
    """
    verify(path, next(f for f in catalogue() if f.path == name))


def verify(path: Path, file: DataFile) -> None:
    """Check a file's checksum; a process reads an unchanged file only once.

    Raises:
        DamagedFileError: the checksum differs; the message names the file, both checksums and the
            fix.
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
            f"{path}: unexpected content: {wrong}; replace it with `runner data fetch {file.dataset}`, "
            "or remove it, or set data_dir (RUNNER_DATA_DIR) to another folder"
        )
    _verified.add(key)
