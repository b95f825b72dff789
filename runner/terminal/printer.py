"""Console, formatting of numbers, and panels for messages."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.panel import Panel
from rich.segment import Segment
from rich.text import Text

from runner.errors import RunnerWarning
from runner.terminal.plain import plain
from runner.terminal.streams import PlainStream, is_terminal

# width of piped output, so that lines are not wrapped
WIDEST = 10_000


class PlainConsole(Console):
    """Rich's console with literal text: no markup, no :emoji:, and only rich's own escape
    sequences.
    """

    def __init__(self, **options: Any):
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    @property
    def file(self) -> IO[str]:
        """Stream that accepts escape sequences.

        During a live display ``sys.stdout`` is rich's proxy of the plain stream of this process.
        """
        file: IO[str] = Console.file.fget(self)  # type: ignore[attr-defined]
        return file.rich_proxied_file if isinstance(file, PlainStream) else file

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(plain(text), **how)  # before its width is measured

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text))


out = PlainConsole(width=None if is_terminal(sys.stdout) else WIDEST)


err = PlainConsole(stderr=True, soft_wrap=True)


T = TypeVar("T")


def number(value: float) -> str:
    """Format a number with four significant digits, without exponents for ordinary magnitudes."""
    if not math.isfinite(value):
        return str(value)
    if 1e4 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.4g}" if 1e-3 <= abs(value) < 1e6 or value == 0 else f"{value:.3e}"


def format_estimate(mean: float, se: float) -> str:
    """Format mean ± standard error; only the mean for a single value."""
    return number(mean) if math.isnan(se) else f"{number(mean)} ± {number(se)}"


def complain(message: str) -> None:
    """Print an error as plain lines on stderr."""
    for line in message.splitlines():
        err.print(line, style="bold red" if err.is_terminal else None)


@contextmanager
def suppress_output() -> Iterator[None]:
    """Context without output, in which announcements become Python warnings."""
    was_quiet = out.quiet
    out.quiet = True
    try:
        yield
    finally:
        out.quiet = was_quiet


def show_count(label: str, done: int, total: int) -> None:
    """On a terminal, print a line with a count that replaces the previous one."""
    if out.is_terminal:
        out.print(f"{label} {done}/{total}", end="\n" if done == total else "\r")


def count_each(label: str, parts: Sequence[T]) -> Iterator[T]:
    """Iterate over parts and call ``show_count`` for each."""
    for i, part in enumerate(parts, 1):
        show_count(label, i, len(parts))
        yield part


def headline(title: str) -> None:
    """Print a title with a horizontal rule."""
    out.print(f"{title} ".ljust(min(out.width, 100), "─"))


def announce(title: str, message: str | Text) -> None:
    """Print an important message: in a panel on a terminal, in one line elsewhere."""
    line = plain(f"{title}: {' '.join(str(message).split())}")
    if out.quiet:
        warnings.warn(line, RunnerWarning, stacklevel=2)
        return
    if not out.is_terminal:
        out.print(f"warning  {line}", soft_wrap=True)
        return
    out.print(Panel(message, title=Text(title), border_style="yellow", expand=False))


def note(message: str) -> None:
    """Print an important message in one line."""
    if out.quiet:
        warnings.warn(message, RunnerWarning, stacklevel=2)
        return
    out.print(Text(f"note     {message}", "yellow"))
