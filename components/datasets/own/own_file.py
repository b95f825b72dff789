"""A data set that is a file of the user's own: found, and named after what it holds."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar

from components.contracts.roles import Dataset, P
from components.trouble import DataUnavailable


class OwnFile(Dataset[P]):
    """``path`` is looked for in the data folder and from where the runner was started; nothing takes its place."""

    own_file: ClassVar[bool] = True  # of no catalogue: only the file itself says whether it is the one of before

    path: str | None

    def file(self, data_dir: Path) -> Path:
        """Where it lies.

        Raises:
            DataUnavailable: no path was given, or there is no such file."""
        if self.path is None:
            raise DataUnavailable("dataset.path: not given; name a file, whole or inside data_dir")
        found = next((p for p in (Path(data_dir) / self.path, Path(self.path)) if p.is_file()), None)
        if found is None:
            raise DataUnavailable(f"dataset.path={self.path}: no such file, neither here nor in {Path(data_dir)}")
        return found

    def identity(self, data_dir: Path, offline: bool) -> str:
        """Its own name, the file's and the beginning of its checksum: other content is other data.

        Raises:
            DataUnavailable: there is no such file."""
        file = self.file(data_dir)
        return f"{self.name}-{file.stem}-{hashlib.sha256(file.read_bytes()).hexdigest()[:8]}"
