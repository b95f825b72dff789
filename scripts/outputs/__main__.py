"""``make outputs``, ``make tutorials``: run the commands in pages and update their outputs.

    python -m scripts.outputs                       README and docs/methods
    python -m scripts.outputs --tutorials           docs/tutorials
    python -m scripts.outputs README.md --check     one page; writes nothing, fails if an output differs

A comment before a fenced block, which this script fills, describes the content of the block:

    <!-- output
    run: +experiment=digits_fgsm          # output of this command; default: last command of the page
    keep: [^step 3000, ^│ accuracy]       # lines to print; others become "…"; default: all
    file: outputs/x.csv                   # show this file instead of the output
    terminal: true                        # the command writes to a terminal; default: to a file
    figures: {outputs/*/*/figures/fit.png: docs/pictures/fit.png}    # with run: {fit.png: …}
    timed: true                           # some numbers are times: --check compares only words
    -->

In a page with ``run:`` only these commands are run, each in its own empty folder.  A tutorial is run
in one empty folder: its indented lines are commands, and a fenced block with a file name in its first
line (``# walk.py``, or ``houses.csv`` before the block) is a file created by the reader.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from runner.disk.atomic import write_text
from scripts.outputs.comparison import is_same_output, select_lines
from scripts.outputs.parts import Command, File, Output, fill, find_outputs, has_run, parse
from scripts.outputs.pictures import save_picture

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "methods").glob("*.md"))]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
COLUMNS = 100  # width of the terminal
RUN_COLUMNS = 104  # width of the terminal for ``run:``
HOME = "/home/you/work"  # replaces the folder of the run in pages


def run_command(command: Command, folder: Path, environment: Mapping[str, str]) -> str:
    """Run a command in a folder; return its output with HOME in place of the folder.

    The output includes stderr, except for ``run:``.

    Raises:
        RuntimeError: the command fails.
    """
    words = ["bash", "-c", command.line]
    # float32 results on processors with AVX-512 are those on others
    variables = {**environment, "ONEDNN_MAX_CPU_ISA": "AVX2"}
    if has_run(command):
        variables["COLUMNS"] = str(RUN_COLUMNS)
    if any(output.terminal for output in command.outputs):
        words = ["script", "--quiet", "--return", "--command", command.line, os.devnull]
        variables |= {"SHELL": "/bin/bash", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(
        words,
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if has_run(command) else subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    if done.returncode:
        printed = f"{done.stdout}{done.stderr or ''}"[-3000:]
        raise RuntimeError(f"{command.line}: exit code {done.returncode}\n{printed}")
    return done.stdout.replace(str(folder), HOME)


def show(output: Output, printed: str, folder: Path) -> str:
    """Lines of a page for a command that was run.

    Raises:
        FileNotFoundError: the command has not written a file or figure required by the page.
    """
    for pattern in output.pictures:
        find_newest(folder, pattern)
    if output.file is not None:
        printed = find_newest(folder, output.file).read_text(encoding="utf-8")
    return select_lines(printed, output.keep)


def find_newest(folder: Path, pattern: str) -> Path:
    """Newest file that matches a pattern.

    Raises:
        FileNotFoundError: no file matches.
    """
    paths = sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
    if not paths:
        raise FileNotFoundError(f"no file {pattern} in {folder}")
    return paths[-1]


def run_page(
    text: str,
    folder: Path,
    environment: Mapping[str, str],
    on_output: Callable[[Output, str, Path], None] = lambda *_: None,
) -> None:
    """Write the files of a page and run its commands in order.

    Args:
        text: Markdown of the page.
        folder: working folder of the commands.
        environment: environment variables of the commands.
        on_output: called with each output of the page, its new lines and its folder.

    Raises:
        RuntimeError: a command fails.
        FileNotFoundError: a file or figure required by the page has not been written.
    """
    for number, step in enumerate(parse(text)):
        if isinstance(step, File):
            path = folder / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.content, encoding="utf-8")
            continue
        place = folder / str(number) if has_run(step) else folder
        place.mkdir(exist_ok=True)
        printed = run_command(step, place, environment)
        for output in step.outputs:
            on_output(output, show(output, printed, place), place)


def make_page(text: str, environment: Mapping[str, str], check: bool) -> str:
    """Run the commands of a page and insert their outputs; figures are written unless ``check``."""
    shown: list[str] = []

    def keep_output(output: Output, lines: str, folder: Path) -> None:
        shown.append(lines)
        for pattern, target in {} if check else output.pictures.items():
            (ROOT / target).parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copy2 if output.run else save_picture
            copy(find_newest(folder, pattern), ROOT / target)

    # the upload to MLflow may write into the folder while it is removed
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        run_page(text, Path(place), environment, keep_output)
    return fill(text, shown)


def build_environment() -> dict[str, str]:
    """Environment variables of the commands: the runner of this tree, on one thread."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    keys = {"PATH": path, "COLUMNS": str(COLUMNS), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return os.environ | keys


def main(argv: list[str]) -> int:
    """Update pages; with --check returns 1 if a page differs."""
    parser = argparse.ArgumentParser(prog="python -m scripts.outputs")
    parser.add_argument("page", nargs="*", type=Path, help="default: README and docs/methods")
    parser.add_argument("--tutorials", action="store_true", help="default: docs/tutorials")
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args(argv)
    differing = 0
    for page in arguments.page or (TUTORIALS if arguments.tutorials else PAGES):
        start = time.monotonic()
        old = page.read_text(encoding="utf-8")
        new = make_page(old, build_environment(), arguments.check)
        is_same = is_same_output(new, old, any(output.timed for output in find_outputs(old)))
        differing += not is_same
        words = "up to date" if is_same else "differs"
        print(f"{page.name}: {words}, {time.monotonic() - start:.0f} s", flush=True)
        if not arguments.check:
            write_text(page, new)
    return int(arguments.check and differing > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
