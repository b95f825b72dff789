"""Lines of several jobs next to each other, each with the number of its job."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import TextIOBase
from typing import TextIO


class NumberedStream(TextIOBase):
    """A stream on which every line begins with the number of a job, and is written whole."""

    def __init__(self, stream: TextIO, number: int):
        self.stream = stream
        self.prefix = f"[{number}] "
        self.begun = ""

    def write(self, text: str) -> int:
        *lines, self.begun = (self.begun + text).split("\n")
        if lines:
            self.stream.write("".join(f"{self.prefix}{line}\n" for line in lines))
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return False  # bars of several jobs would overwrite each other

    def end(self) -> None:
        """Writes a line that was not ended."""
        if self.begun:
            self.write("\n")
        self.flush()


@contextmanager
def number_lines(number: int) -> Iterator[None]:
    """Both streams of this process carry a job's number in here."""
    streams = NumberedStream(sys.stdout, number), NumberedStream(sys.stderr, number)
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            yield
        finally:
            for stream in streams:
                stream.end()
