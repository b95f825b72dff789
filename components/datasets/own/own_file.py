"""A data set that is a file of the user's own: found, and named after what it holds."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar

from components.contracts.roles import Dataset
from components.contracts.roles.dataset import P
from components.datasets.data_files import find_own_file
from components.errors import DataUnavailableError


class OwnFile(Dataset[P]):
    """``path`` is looked for in the data folder and from where the runner was started; nothing
    takes its place."""

    # not in a catalogue: only the file itself shows whether it has changed
    own_file: ClassVar[bool] = True
    reads_folders: ClassVar[bool] = False  # a path may be a folder of text files

    path: str | None

    def file(self, data_dir: Path) -> Path:
        """Path of the file.

        Raises:
            DataUnavailableError: no path was given, or there is no such file.
        """
        if self.path is None:
            raise DataUnavailableError(
                "dataset.path: not given; name a file, whole or inside data_dir"
            )
        return find_own_file(
            "path", self.path, data_dir, Path.exists if self.reads_folders else Path.is_file
        )

    def files(self, data_dir: Path) -> list[Path]:
        """The file, or the text files of the folder in the order of their names.

        Raises:
            DataUnavailableError: as ``file``, or the folder holds no text file."""
        file = self.file(data_dir)
        files = sorted(file.rglob("*.txt")) if file.is_dir() else [file]
        if not files:
            raise DataUnavailableError(
                f"dataset.path={self.path}: no file *.txt in {file}; name another folder, or a file"
            )
        return files

    def identity(self, data_dir: Path, offline: bool) -> str:
        """Its own name, the file's and the beginning of its checksum: other content is other data.

        Raises:
            DataUnavailableError: there is no such file."""
        file = self.file(data_dir)
        files = self.files(data_dir)
        digest = hashlib.sha256()
        for part in files:
            digest.update((str(part.relative_to(file)) + "\0").encode() if part != file else b"")
            digest.update(part.read_bytes())
        return f"{self.name}-{file.stem}-{digest.hexdigest()[:8]}"
