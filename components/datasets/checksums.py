"""Checksums of data files.

They cover the bytes, the content of a .gz file, or the numbers of a table in any format.
"""

from __future__ import annotations

import gzip
import hashlib
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BLOCK = 1 << 20


def numbers(path: Path) -> NDArray[np.float64]:
    """The table of numbers in a text file, or under ``data`` in an .npz file; [rows, columns].

    Raises ValueError, KeyError or OSError for a file without a table."""
    import numpy as np  # not needed to list or fetch files

    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return np.asarray(arrays["data"], dtype=np.float64)
    return np.loadtxt(path, ndmin=2)


def _digest(blocks: Iterable[bytes], algorithm: str, prefix: bytes = b"") -> str:
    state = hashlib.new(algorithm, prefix)
    for block in blocks:
        state.update(block)
    return state.hexdigest()


def mismatch(path: Path, checksums: Mapping[str, str | None]) -> str | None:
    """None if any checksum matches, otherwise the expected and actual ones."""
    wrong = []
    for name, expected in checksums.items():
        if expected is None:
            continue
        actual = checksum(path, name)
        if actual == expected:
            return None
        wrong.append(f"{name} expected {expected}, found {actual}")
    return "; ".join(wrong)


def checksum(path: Path, name: str) -> str:
    """A checksum of a file, or the reason why it cannot be computed."""
    if name == "sha256 of the numbers":
        try:
            return _digest([numbers(path).astype("<f8").tobytes()], "sha256")
        except (ValueError, KeyError, zipfile.BadZipFile):
            return "not a table of numbers"
    try:
        with gzip.open(path) if name == "sha256 of the content" else path.open("rb") as stream:
            blocks = iter(lambda: stream.read(_BLOCK), b"")
            if name == "git blob":
                return _digest(blocks, "sha1", b"blob %d\0" % path.stat().st_size)
            return _digest(blocks, "sha256")
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return "not a gzip file"
