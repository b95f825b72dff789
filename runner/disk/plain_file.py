"""Files of records, which another program may have made.

Pipes and devices, which can be read without end, are refused.
"""

from __future__ import annotations

import errno
import json
import stat
from io import BufferedReader
from pathlib import Path
from typing import Any


class NotPlainFileError(OSError):
    """The path leads to a pipe, a device or a folder."""


def open_plain(path: Path) -> BufferedReader:
    """A file, open for reading.

    Raises:
        OSError: it cannot be opened.
        NotPlainFileError: it is not a plain file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise NotPlainFileError(errno.EINVAL, "no plain file", str(path))
    return path.open("rb")


def read_plain(path: Path) -> bytes:
    """Content of a file.

    Raises:
        OSError: as ``open_plain``.
    """
    with open_plain(path) as file:
        return file.read()


def parse_json(text: str | bytes) -> Any:
    """Value of a JSON text.

    Raises:
        ValueError: it is not JSON, its lists are nested too deeply to be read, or it has half of a
            surrogate pair, which no file can hold.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    escape = "\\ud" if isinstance(text, str) else b"\\ud"
    if escape in text.lower():  # type: ignore[operator]  # both are text, or both are bytes
        json.dumps(value, ensure_ascii=False).encode()
    return value
