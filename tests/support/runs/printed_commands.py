"""Commands printed in the documents, split as by a shell."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "methods").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
    ROOT / "docs" / "results" / "README.md",
]


@dataclass(frozen=True)
class Printed:
    """One command of one page; its words exclude variables before it and the comment after it."""

    page: Path
    words: tuple[str, ...]
    uses_own_modules: bool  # modules of the page, found through PYTHONPATH=.

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: runner {' '.join(self.words)}"


def split(text: str) -> list[list[str]]:
    """Commands of a line, without ``runner`` and the variables before it."""
    commands = []
    for command in re.split(r" && |; ", text):
        words = shlex.split(command, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if words and words[0] == "runner":
            commands.append(words[1:])
    return commands


def list_printed() -> list[Printed]:
    """Commands in indented blocks, and in backticks in the page's prose, each once."""
    commands: dict[Printed, None] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        blocks = [
            line.strip()
            for line in re.findall(r"^    +(?:[A-Z_]+=\S* )*runner .*$", text, re.MULTILINE)
        ]
        prose = [
            code
            for code in re.findall(r"(?<!`)`(runner [^`\n]+)`", text)
            if not re.search(r"[…|<(]", code)
        ]
        for line in (*blocks, *prose):
            for words in split(line):
                commands[Printed(page, tuple(words), line.startswith("PYTHONPATH=."))] = None
    return list(commands)


def files(page: Path) -> dict[str, str]:
    """File name -> content of fenced blocks that name a file in their first line, and of tables
    after a line that does."""
    text = page.read_text(encoding="utf-8")
    commands = {}
    for block in re.findall(r"```\w+\n(.*?)```", text, re.DOTALL):
        if named := re.match(r"# ([\w./-]+\.(?:py|yaml))\n", block):
            commands[named[1]] = block
    return commands | dict(
        re.findall(r"^`([\w./-]+\.csv)`:\n\n```csv\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    )
