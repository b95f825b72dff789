"""Parts of a page: files created by the reader, commands, and their outputs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import yaml

PARTS = re.compile(
    r"^<!-- output\n(?P<options>.*?)-->\n(?P<fence>```\w*)\n(?P<shown>.*?)```$"
    r"|^`(?P<csv>[\w./-]+\.csv)`:\n\n```csv\n(?P<cells>.*?)```$"
    r"|^```\w*\n(?P<content># (?P<file>[\w./-]+)\n.*?)```$"
    r"|^```.*?^```$"
    r"|^    (?P<command>\S(?:[^\n]*\\\n)*[^\n]*)$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class File:
    """A file created by the reader."""

    name: str
    content: str


@dataclass(frozen=True)
class Output:
    """Output of a command in a page."""

    shown: str
    run: str | None = None
    keep: list[str] = field(default_factory=list)
    file: str | None = None
    terminal: bool = False
    figures: dict[str, str] = field(default_factory=dict)
    timed: bool = False

    @property
    def pictures(self) -> dict[str, str]:
        """Patterns of figures in the folder of the command, and their target files."""
        folder = "outputs/*/*/figures/" if self.run else ""
        return {f"{folder}{name}": target for name, target in self.figures.items()}


@dataclass(frozen=True)
class Command:
    """A shell command and its outputs in the page."""

    line: str
    outputs: tuple[Output, ...] = ()


def parse(text: str) -> list[File | Command]:
    """Files and commands of a page in order; in a page with ``run:`` only those commands."""
    steps: list[File | Command] = []
    for match in PARTS.finditer(text):
        if match["command"]:
            steps.append(Command(match["command"]))
        elif match["file"] or match["csv"]:
            steps.append(File(match["file"] or match["csv"], match["content"] or match["cells"]))
        elif match["options"] is not None:
            output = Output(match["shown"], **yaml.safe_load(match["options"] or "{}") or {})
            if output.run:
                steps.append(Command(f"runner {output.run} tracking=false"))
            last = steps[-1]
            if not isinstance(last, Command):
                raise ValueError(f"an output without a command: {match[0]}")
            steps[-1] = replace(last, outputs=(*last.outputs, output))
    runs = [step for step in steps if isinstance(step, Command) and has_run(step)]
    return [*runs] or steps


def has_run(command: Command) -> bool:
    """True if a command comes from ``run:``."""
    return any(output.run for output in command.outputs)


def find_outputs(text: str) -> list[Output]:
    """Outputs of a page."""
    commands = [step for step in parse(text) if isinstance(step, Command)]
    return [output for command in commands for output in command.outputs]


def fill(text: str, shown: Iterable[str]) -> str:
    """Insert new lines into the outputs of a page, in order."""
    lines = iter(shown)

    def replace_lines(match: re.Match[str]) -> str:
        if match["options"] is None:
            return match[0]
        return f"<!-- output\n{match['options']}-->\n{match['fence']}\n{next(lines)}```"

    return PARTS.sub(replace_lines, text)
