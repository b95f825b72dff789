"""Output of parallel jobs, with the number of its job on each line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from typing import TextIO

from runner.terminal.streams import LineStream


class NumberedStream(LineStream):
    """A stream that prefixes each line with the number of a job.

    It is no terminal, because progress bars of several jobs would overwrite each other.
    """

    def __init__(self, stream: TextIO, number: int):
        super().__init__(stream)
        self.prefix = f"[{number}] "

    def format_line(self, line: str) -> str:
        return f"{self.prefix}{line}\n"


@contextmanager
def number_lines(number: int) -> Iterator[None]:
    """Context in which both streams of this process are prefixed with a job's number."""
    with (
        closing(NumberedStream(sys.stdout, number)) as out,
        closing(NumberedStream(sys.stderr, number)) as err,
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        yield
