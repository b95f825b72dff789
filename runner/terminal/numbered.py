"""Output of parallel jobs, with the number of its job on each line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import TextIOBase
from typing import TextIO


class NumberedStream(TextIOBase):
    """A stream that prefixes each line with the number of a job and writes complete lines."""

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
        return False  # progress bars of several jobs would overwrite each other

    def end(self) -> None:
        """Write an unfinished line."""
        if self.begun:
            self.write("\n")
        self.flush()


@contextmanager
def number_lines(number: int) -> Iterator[None]:
    """Context in which both streams of this process are prefixed with a job's number."""
    streams = NumberedStream(sys.stdout, number), NumberedStream(sys.stderr, number)
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            yield
        finally:
            for stream in streams:
                stream.end()
