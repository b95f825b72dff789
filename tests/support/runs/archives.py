"""Archives of small files."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path


def write_archive(path: Path, files: Mapping[str, bytes], folder: str = "") -> None:
    """Write a compressed archive; names are below ``folder``."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(folder + name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
