"""Zip files that may come from a stranger, opened for reading."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.disk.plain_file import open_plain
from runner.errors import ConfigError

READ_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    RuntimeError,  # encrypted
    NotImplementedError,
    EOFError,
    ValueError,
)


@contextmanager
def open_zip(path: Path, damaged: str, hint: str = "") -> Iterator[zipfile.ZipFile]:
    """A plain file, open as a zip; what its reader finds damaged is one error.

    Args:
        path: the file.
        damaged: message for a file that is no zip, or a damaged one; the cause follows in brackets.
        hint: how to fix it, after the cause.

    Raises:
        OSError: the file cannot be read.
        ConfigError: it is no zip, or damaged.
    """
    try:
        with open_plain(path) as stream, zipfile.ZipFile(stream) as archive:
            yield archive
    except READ_ERRORS as error:
        raise ConfigError(f"{damaged} ({error}){hint}") from None
