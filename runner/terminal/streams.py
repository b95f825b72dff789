"""The two output streams of a command.

They can print every letter, pass on no control character, and outlive any reader.

If a run's reader goes away (``| head``, a terminal that dies), or its output has no
room left, the run continues without a display to its end: its record is what counts.
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

NAMES = {1: "standard output", 2: "standard error"}


class FaultTolerantFile(io.FileIO):
    """A file descriptor; once it cannot be written to, what is written goes nowhere."""

    names_pipes = False  # True: a closed reader is worth a line too, as a run continues without it

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
        """Turns the descriptor to the null device, once; on standard error a line says so."""
        if self.lost is not None:
            return
        self.lost = error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        if self.fileno() == 1 and (self.names_pipes or not isinstance(error, BrokenPipeError)):
            with suppress(OSError, ValueError, AttributeError):
                sys.stderr.write(
                    f"{NAMES[1]}: {error.strerror}; the command goes on without a display\n"
                )
                sys.stderr.flush()


class PlainStream(io.TextIOBase):
    """Text on a descriptor, without control characters.  ``rich_proxied_file`` is where rich looks
    for a stream to write to, which takes its colours and cleans what it is given itself
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


_files: dict[int, FaultTolerantFile] = {}  # by descriptor, of this process


def install() -> None:
    """Replace this process's standard streams with these.

    It is called by a process started as a command, before any import that reads the
    streams. Streams replaced by a test or a notebook are left unchanged.
    """
    # each closed one takes its own number, before some other file takes it
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
    """True if something that was written to standard output went nowhere, though there was somebody
    to read it."""
    sys.stdout.flush()
    error = _files[1].lost if 1 in _files else None
    return error is not None and not isinstance(error, BrokenPipeError)


def is_terminal(stream: TextIO | None) -> bool:
    """True if the stream is read on a terminal; a closed stream is not."""
    return stream is not None and stream.isatty()
