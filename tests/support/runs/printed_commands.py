"""The commands that the documents print, as a shell would split them."""

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
    """One command of one page; its words without the variables before it and the remark after
    it."""

    page: Path
    words: tuple[str, ...]
    own: bool  # of modules of the page's own, which PYTHONPATH=. finds

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: runner {' '.join(self.words)}"


def split(text: str) -> list[list[str]]:
    """The commands of a line, ``runner`` and variables before it left out."""
    commands = []
    for command in re.split(r" && |; ", text):
        words = shlex.split(command, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if words and words[0] == "runner":
            commands.append(words[1:])
    return commands


def list_printed() -> list[Printed]:
    """Commands of indented blocks, and of the page's prose those between backticks, each once."""
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
    """File name -> content of the page's fenced blocks whose first line names a file, and of tables
    after a line that does."""
    text = page.read_text(encoding="utf-8")
    commands = {}
    for block in re.findall(r"```\w+\n(.*?)```", text, re.DOTALL):
        if named := re.match(r"# ([\w./-]+\.(?:py|yaml))\n", block):
            commands[named[1]] = block
    return commands | dict(
        re.findall(r"^`([\w./-]+\.csv)`:\n\n```csv\n(.*?)```", text, re.DOTALL | re.MULTILINE)
    )
