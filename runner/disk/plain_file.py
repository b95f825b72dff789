"""Files of records, possibly written by other programs.

Pipes and devices, which may never end, are refused.
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
    """Open a plain file for reading.

    Raises:
        OSError: the file cannot be opened.
        NotPlainFileError: it is not a plain file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise NotPlainFileError(errno.EINVAL, "not a plain file", str(path))
    return path.open("rb")


def read_plain(path: Path) -> bytes:
    """Content of a file.

    Raises:
        OSError: see ``open_plain``.
    """
    with open_plain(path) as file:
        return file.read()


def parse_json(text: str | bytes) -> Any:
    """Parse JSON.

    Raises:
        ValueError: the text is not JSON, is nested too deeply, or contains an unpaired surrogate,
            which cannot be written to a file.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    escape = "\\ud" if isinstance(text, str) else b"\\ud"
    if escape in text.lower():  # type: ignore[operator]  # both str or both bytes
        json.dumps(value, ensure_ascii=False).encode()
    return value
