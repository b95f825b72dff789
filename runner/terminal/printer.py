"""The console, numbers as text, and panels for messages."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.segment import Segment
from rich.text import Text

from runner.errors import RunnerWarning
from runner.terminal.plain import plain
from runner.terminal.streams import PlainStream, is_terminal

# columns of piped output: it has no width of its own, and its lines are never folded
WIDEST = 10_000


class PlainConsole(Console):
    """Rich's console, for which words are words: no markup, no :emoji:, no escape sequence but its
    own."""

    def __init__(self, *, stderr: bool = False, soft_wrap: bool = False, width: int | None = None):
        super().__init__(
            stderr=stderr,
            soft_wrap=soft_wrap,
            width=width,
            highlight=False,
            markup=False,
            emoji=False,
        )

    @property
    def file(self) -> IO[str]:
        """The stream that takes escape sequences.

        During a live display ``sys.stdout`` is rich's proxy of this process's plain stream.
        """
        file: IO[str] = Console.file.fget(self)  # type: ignore[attr-defined]
        return file.rich_proxied_file if isinstance(file, PlainStream) else file

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(plain(text), **how)  # before it is measured

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text))


out = PlainConsole(width=None if is_terminal(sys.stdout) else WIDEST)


err = PlainConsole(stderr=True, soft_wrap=True)


T = TypeVar("T")
WIDE = 8  # columns that are readable side by side


def number(value: float) -> str:
    """Four significant digits, without exponents for ordinary sizes."""
    if not math.isfinite(value):
        return str(value)
    if 1e4 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.4g}" if 1e-3 <= abs(value) < 1e6 or value == 0 else f"{value:.3e}"


def format_estimate(mean: float, se: float) -> str:
    """Mean ± standard error, which a single value does not have."""
    return number(mean) if math.isnan(se) else f"{number(mean)} ± {number(se)}"


def complain(message: str) -> None:
    """A user's mistake or a run's failure: plain lines on stderr."""
    for line in message.splitlines():
        err.print(line, style="bold red" if err.is_terminal else None)


@contextmanager
def suppress_output() -> Iterator[None]:
    """Nothing is shown in here; what must not be overlooked is a warning of Python's."""
    before = out.quiet
    out.quiet = True
    try:
        yield
    finally:
        out.quiet = before


def show_count(label: str, done: int, total: int) -> None:
    """On a terminal: a line with a count, over the line of the last one."""
    if out.is_terminal:
        out.print(f"{label} {done}/{total}", end="\n" if done == total else "\r")


def count_each(label: str, parts: Sequence[T]) -> Iterator[T]:
    """Parts, with ``show_count`` of each."""
    for i, part in enumerate(parts, 1):
        show_count(label, i, len(parts))
        yield part


def headline(title: str) -> None:
    """A rule across the page, with words; whole where it is not read on a terminal."""
    if not out.is_terminal:
        out.print(f"{title} ───")
        return
    out.print(Rule(Text(title), align="left"), width=min(out.width, 100))


def announce(title: str, message: str | Text) -> None:
    """Something that must not be overlooked, in a panel."""
    if out.quiet:
        warnings.warn(plain(f"{title}: {message}"), RunnerWarning, stacklevel=2)
        return
    out.print(Panel(message, title=Text(title), border_style="yellow", expand=False))


def note(message: str) -> None:
    """One line that must not be overlooked."""
    if out.quiet:
        warnings.warn(message, RunnerWarning, stacklevel=2)
        return
    out.print(Text(f"note     {message}", "yellow"))
