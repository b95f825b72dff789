"""A data set in a user's file, named after its content."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar

from components.contracts.requirements import ChoiceFacts
from components.contracts.roles import Dataset
from components.contracts.roles.component import P
from components.datasets.data_files import find_own_file
from components.errors import DataUnavailableError


class OwnFile(Dataset[P]):
    """Data set in the file ``path``, which is searched in the data folder and the working
    directory. There is no substitute.
    """

    # not in the catalogue: changes are detected from the file itself
    own_file: ClassVar[bool] = True
    reads_folders: ClassVar[bool] = False  # the path may be a folder of text files

    path: str | None

    def data_facts(self) -> ChoiceFacts:
        return super().data_facts()._replace(has_all_traits=False)

    def file(self, data_dir: Path) -> Path:
        """Path of the file.

        Raises:
            DataUnavailableError: the path is not set, or the file does not exist.
        """
        if self.path is None:
            raise DataUnavailableError(
                "dataset.path: not set; give a path, absolute or relative to data_dir"
            )
        return find_own_file(
            "path", self.path, data_dir, Path.exists if self.reads_folders else Path.is_file
        )

    def files(self, data_dir: Path) -> list[Path]:
        """The file, or the text files of the folder, sorted by name.

        Raises:
            DataUnavailableError: see ``file``, or the folder has no text file."""
        file = self.file(data_dir)
        files = sorted(file.rglob("*.txt")) if file.is_dir() else [file]
        if not files:
            raise DataUnavailableError(
                f"dataset.path={self.path}: {file} has no *.txt file; choose another folder, or a file"
            )
        return files

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The names of the dataset and of the file, and the beginning of its checksum.

        Raises:
            DataUnavailableError: the file does not exist."""
        file = self.file(data_dir)
        files = self.files(data_dir)
        digest = hashlib.sha256()
        for part in files:
            digest.update((str(part.relative_to(file)) + "\0").encode() if part != file else b"")
            digest.update(part.read_bytes())
        return f"{self.name}-{file.stem}-{digest.hexdigest()[:8]}"
