"""Standard output as JSON Lines, for ``--json`` of commands that print tables and lines.

A row of a table becomes an object with the names of the columns as keys and the cells as texts, and
the title of the table, if it has one, under ``table``.  Any other line becomes ``{"message": …}``.
"""

from __future__ import annotations

import io
import json
import sys
from typing import TextIO


class JsonLines(io.TextIOBase):
    """Stream that wraps each line that is not a JSON object into one."""

    def __init__(self, stream: TextIO):
        self.stream = stream
        self.line = ""

    def write(self, text: str) -> int:
        *lines, self.line = (self.line + text).split("\n")
        for line in filter(str.strip, lines):
            message = json.dumps({"message": line.strip()}, ensure_ascii=False)
            self.stream.write(f"{line if line.startswith('{') else message}\n")
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        """Write the rest of the last line."""
        if self.line:
            self.write("\n")
        self.flush()


def install() -> None:
    """Convert the standard output of this process from now on."""
    if not is_installed():
        sys.stdout = JsonLines(sys.stdout)


def is_installed() -> bool:
    """True if the standard output is converted."""
    return isinstance(sys.stdout, JsonLines)


def uninstall() -> None:
    """Write the rest and restore the stream."""
    if isinstance(sys.stdout, JsonLines):
        sys.stdout.close()
        sys.stdout = sys.stdout.stream
