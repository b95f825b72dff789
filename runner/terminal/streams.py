"""Output streams of a command: any character is printable, control characters are replaced, and
errors of the reader are tolerated.

If the reader of a run's output disappears (``| head``, a closed terminal), or the disk of its
output is full, the run continues without a display, because its record is the result.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

from runner.terminal.plain import plain

if TYPE_CHECKING:
    from typing_extensions import Buffer


class FaultTolerantFile(io.FileIO):
    """A file descriptor that discards output after a write error."""

    names_pipes = False  # True to report a closed pipe, because a run continues without a reader

    def __init__(self, fd: int):
        super().__init__(fd, "w", closefd=False)
        self.lost: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data) or 0
        except BlockingIOError:
            raise
        except OSError as error:
            self._redirect_to_null(error)
            return memoryview(data).nbytes

    def _redirect_to_null(self, error: OSError) -> None:
        """Redirect the descriptor to the null device, once, and report it on standard error."""
        if self.lost is not None:
            return
        self.lost = error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        if self.fileno() == 1 and (self.names_pipes or not isinstance(error, BrokenPipeError)):
            with suppress(OSError, ValueError, AttributeError):
                sys.stderr.write(
                    f"standard output: {error.strerror}; the command continues without a display\n"
                )
                sys.stderr.flush()


class PlainStream(io.TextIOBase):
    """Text stream on a descriptor, without control characters.

    Rich writes to ``rich_proxied_file``, which accepts colours, and cleans its text itself
    (``runner.execution.screen.show_run``)."""

    def __init__(self, styled: io.TextIOWrapper):
        self.rich_proxied_file = styled
        self.buffer = styled.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.rich_proxied_file.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.rich_proxied_file.errors

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(plain(text))
        return len(text)

    def flush(self) -> None:
        self.rich_proxied_file.flush()

    def fileno(self) -> int:
        return self.rich_proxied_file.fileno()

    def isatty(self) -> bool:
        return self.rich_proxied_file.isatty()

    def writable(self) -> bool:
        return True


class LineStream(io.TextIOBase):
    """Stream that writes complete lines, each formatted by ``format_line``; ``close`` writes the
    rest of the last one.
    """

    def __init__(self, stream: TextIO):
        self.stream = stream
        self.line = ""

    def format_line(self, line: str) -> str:
        """The text to write for a line, with its line break."""
        raise NotImplementedError

    def write(self, text: str) -> int:
        *lines, self.line = (self.line + text).split("\n")
        self.stream.write("".join(map(self.format_line, lines)))
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        if self.line:
            self.write("\n")
        self.flush()


_files: dict[int, FaultTolerantFile] = {}  # files of this process by descriptor


def install() -> None:
    """Replace the standard streams of this process.

    Called in processes started as commands, before any import that reads the streams.
    Streams replaced by a test or a notebook are left unchanged.
    """
    # each closed descriptor is reopened before another file gets its number
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _open_fault_tolerant(1, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _open_fault_tolerant(2, sys.stderr)


def _open_fault_tolerant(fd: int, before: TextIO | None) -> Any:
    encoding = "utf-8" if before is None else before.encoding
    lines = fd == 2 or os.isatty(fd)
    if before is not None:
        with suppress(OSError, ValueError):
            before.flush()
    _files[fd] = FaultTolerantFile(fd)
    buffer: io.BufferedWriter = io.BufferedWriter(_files[fd])
    styled = io.TextIOWrapper(
        buffer, encoding, "replace", line_buffering=lines, write_through=fd == 2
    )
    return PlainStream(styled)


def has_lost_output() -> bool:
    """True if output to an open standard output was lost."""
    sys.stdout.flush()
    error = _files[1].lost if 1 in _files else None
    return error is not None and not isinstance(error, BrokenPipeError)


def is_terminal(stream: TextIO | None) -> bool:
    """True if the stream is a terminal; False if it is closed."""
    return stream is not None and stream.isatty()
