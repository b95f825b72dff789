"""Standard output as JSON Lines, for ``--json`` of commands that print tables and lines.

A row of a table becomes an object with the names of the columns as keys and the cells as texts, and
the title of the table, if it has one, under ``table``; a named value becomes ``{name: value}``.
Any other line becomes ``{"message": …}``.
"""

from __future__ import annotations

import json
import sys
from typing import Literal

from typing_extensions import TypedDict

from runner.terminal.streams import LineStream

# names of values that commands print
FactName = Literal[
    "ahead",
    "best",
    "budget",
    "check it",
    "checks",
    "chosen",
    "code",
    "columns",
    "cost",
    "figures",
    "front",
    "frozen",
    "logs",
    "note",
    "packed",
    "page",
    "partial",
    "plan",
    "prices",
    "problem",
    "problems",
    "recommended",
    "refused",
    "removed",
    "report",
    "result",
    "rows",
    "run it",
    "search",
    "skipped",
    "source",
    "steps",
    "study",
    "test it",
    "the rest",
    "tie",
    "time",
    "truth",
    "written",
]
Fact = dict[FactName, str]  # with one name


class Message(TypedDict):
    """Line that is neither a row nor a fact."""

    message: str


class JsonLines(LineStream):
    """Stream that wraps each line that is not a JSON object into one."""

    def format_line(self, line: str) -> str:
        if line.startswith("{"):
            return f"{line}\n"
        message = Message(message=line.strip())
        return f"{json.dumps(message, ensure_ascii=False)}\n" if line.strip() else ""


def install() -> None:
    """Convert the standard output of this process from now on."""
    sys.stdout = JsonLines(sys.stdout)


def is_installed() -> bool:
    """True if the standard output is converted."""
    return isinstance(sys.stdout, JsonLines)


def uninstall() -> None:
    """Write the rest and restore the stream."""
    if isinstance(sys.stdout, JsonLines):
        sys.stdout.close()
        sys.stdout = sys.stdout.stream
