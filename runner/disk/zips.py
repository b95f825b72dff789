"""Untrusted zip files, opened for reading."""

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
    """Open a plain file as a zip; errors of reading it become ConfigError.

    Args:
        path: the file.
        damaged: message for an invalid zip; the cause follows in brackets.
        hint: how to fix it, after the cause.

    Raises:
        OSError: the file cannot be read.
        ConfigError: the file is not a zip, or is damaged.
    """
    try:
        with open_plain(path) as stream, zipfile.ZipFile(stream) as archive:
            yield archive
    except READ_ERRORS as error:
        raise ConfigError(f"{damaged} ({error}){hint}") from None
