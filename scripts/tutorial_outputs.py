"""``make tutorials``: commands of docs/tutorials, run in order, and the outputs that they print.

    python -m scripts.tutorial_outputs                       every tutorial
    python -m scripts.tutorial_outputs docs/tutorials/x.md   one of them

Every tutorial runs in its own empty folder. Its indented lines are commands; a fenced block with a
file's name in its first line (``# walk.py``, or ``houses.csv`` before the block) is a file that the
reader writes. A comment before a fenced block says what the block shows of the last command:

    <!-- output
    keep: [^step, ^record]                # lines to print; others become "…"; default: all
    file: outputs/x.csv                   # show this file instead of what was printed
    terminal: true                        # the command writes to a terminal; default: to a file
    figures: {outputs/*/*/figures/fit.png: docs/pictures/fit.png}
    -->
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from PIL import Image

from runner.disk.atomic import write_text
from scripts.page_outputs import select_lines

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
COLUMNS = 100  # of the terminal
HOME = "/home/you/work"  # what a page shows in place of the folder of the run
PICTURE_BYTES = 100_000
PARTS = re.compile(
    r"^<!-- output\n(?P<options>.*?)-->\n(?P<fence>```\w*)\n(?P<shown>.*?)```$"
    r"|^`(?P<csv>[\w./-]+\.csv)`:\n\n```csv\n(?P<cells>.*?)```$"
    r"|^```\w*\n(?P<content># (?P<file>[\w./-]+)\n.*?)```$"
    r"|^```.*?^```$"
    r"|^    (?P<command>\S(?:[^\n]*\\\n)*[^\n]*)$",
    re.DOTALL | re.MULTILINE,
)
MINUTES = re.compile(r"^\*\*Time:\*\* (\d+) minutes?\b", re.MULTILINE)


@dataclass(frozen=True)
class File:
    """A file that the reader writes."""

    name: str
    content: str


@dataclass(frozen=True)
class Output:
    """What a page shows of a command."""

    shown: str
    keep: list[str] = field(default_factory=list)
    file: str | None = None
    terminal: bool = False
    figures: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """A command line of a shell, and what the page shows of it."""

    line: str
    outputs: tuple[Output, ...] = ()


def parse(text: str) -> list[File | Command]:
    """Files and commands of a page, in its order."""
    steps: list[File | Command] = []
    for match in PARTS.finditer(text):
        if match["command"]:
            steps.append(Command(match["command"]))
        elif match["file"] or match["csv"]:
            steps.append(File(match["file"] or match["csv"], match["content"] or match["cells"]))
        elif match["options"] is not None:
            last = steps[-1]
            if not isinstance(last, Command):
                raise ValueError(f"an output without a command: {match[0]}")
            output = Output(match["shown"], **yaml.safe_load(match["options"] or "{}") or {})
            steps[-1] = Command(last.line, (*last.outputs, output))
    return steps


def read_minutes(text: str) -> int:
    """The minutes that a page states.

    Raises:
        ValueError: it states none.
    """
    match = MINUTES.search(text)
    if match is None:
        raise ValueError("no line begins with **Time:** N minutes")
    return int(match[1])


def run_command(
    line: str, folder: Path, environment: Mapping[str, str], in_terminal: bool = False
) -> str:
    """Runs a command line in a folder; what it prints, with HOME in place of the folder.

    Args:
        line: for bash.
        folder: where it runs.
        environment: its variables.
        in_terminal: it writes to a terminal, where tables are drawn.

    Raises:
        RuntimeError: it fails.
    """
    command = ["bash", "-c", line]
    if in_terminal:
        command = ["script", "--quiet", "--return", "--command", line, os.devnull]
        environment = {**environment, "SHELL": "/bin/bash", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise RuntimeError(f"{line}: exit code {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout.replace(str(folder), HOME)


def show(output: Output, printed: str, folder: Path) -> str:
    """The lines that a page shows of a command that has run.

    Raises:
        FileNotFoundError: the command has not written a file or figure that the page shows.
    """
    for pattern in (output.file, *output.figures):
        if pattern is not None:
            find_newest(folder, pattern)
    text = printed
    if output.file is not None:
        text = find_newest(folder, output.file).read_text(encoding="utf-8")
    return select_lines(text, output.keep)


def find_newest(folder: Path, pattern: str) -> Path:
    """The newest file that matches a pattern.

    Raises:
        FileNotFoundError: there is none.
    """
    paths = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not paths:
        raise FileNotFoundError(f"no {pattern} in {folder}")
    return paths[-1]


def save_picture(source: Path, target: Path) -> None:
    """Copies a picture, with fewer colours, and smaller until it has at most PICTURE_BYTES."""
    picture = Image.open(source).convert("RGB")
    if picture.width > 900:
        picture = picture.resize((900, round(picture.height * 900 / picture.width)))
    target.parent.mkdir(parents=True, exist_ok=True)
    for colours in (128, 64, 32, 16):
        picture.quantize(colours).save(target, optimize=True)
        if target.stat().st_size <= PICTURE_BYTES:
            return
    raise ValueError(f"{target}: more than {PICTURE_BYTES} bytes")


def run_page(
    text: str,
    folder: Path,
    environment: Mapping[str, str],
    on_output: Callable[[Output, str], None] = lambda *_: None,
) -> None:
    """Writes the files of a page and runs its commands, in its order.

    Args:
        text: the page, Markdown.
        folder: where the commands run.
        environment: their variables.
        on_output: called with each output of the page and the lines that it shows now.

    Raises:
        RuntimeError: a command fails.
        FileNotFoundError: a file or figure that the page shows has not been written.
    """
    for step in parse(text):
        if isinstance(step, File):
            path = folder / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.content, encoding="utf-8")
            continue
        in_terminal = any(output.terminal for output in step.outputs)
        printed = run_command(step.line, folder, environment, in_terminal)
        for output in step.outputs:
            on_output(output, show(output, printed, folder))


def fill(page: Path, environment: Mapping[str, str]) -> None:
    """Runs a page and writes its new outputs and pictures."""
    text = page.read_text(encoding="utf-8")
    shown: list[str] = []
    # MLflow is told in the background, and may write into the folder while it is removed
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:

        def keep_output(output: Output, lines: str) -> None:
            shown.append(lines)
            for pattern, target in output.figures.items():
                save_picture(find_newest(Path(place), pattern), ROOT / target)

        run_page(text, Path(place), environment, keep_output)

    def replace(match: re.Match[str]) -> str:
        if match["options"] is None:
            return match[0]
        return f"<!-- output\n{match['options']}-->\n{match['fence']}\n{shown.pop(0)}```"

    write_text(page, PARTS.sub(replace, text))


def main(argv: list[str]) -> None:
    """Fills tutorials with the outputs of their commands."""
    parser = argparse.ArgumentParser(prog="python -m scripts.tutorial_outputs")
    parser.add_argument("page", nargs="*", type=Path, help="default: all of docs/tutorials")
    environment = os.environ | {"COLUMNS": str(COLUMNS)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for page in parser.parse_args(argv).page or PAGES:
        begin = os.times()
        start = time.monotonic()
        fill(page, environment)
        end = os.times()
        cpu = end.children_user + end.children_system - begin.children_user - begin.children_system
        print(f"{page.name}: {time.monotonic() - start:.0f} s, {cpu:.0f} s of CPU", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
