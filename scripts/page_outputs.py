"""``make outputs``: outputs of runs that README and docs/methods print, and their figures.

    python -m scripts.page_outputs                   every page
    python -m scripts.page_outputs README.md         one page
    python -m scripts.page_outputs --check           writes nothing, fails if an output differs

A page says what to run in a comment before a fenced block, which this script fills:

    <!-- output
    run: +experiment=digits_fgsm
    keep: [^step 3000, ^│ accuracy]          # lines to print; others become "…"
    figures: {security_curve.png: docs/pictures/attack.png}
    -->
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from runner.disk.atomic import write_text

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "methods").glob("*.md"))]
BLOCK = re.compile(r"(<!-- output\n(.*?)-->\n```text\n)(.*?)(```\n)", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")
COLUMNS = 104  # of the terminal
TOLERANCE = 0.1  # relative, of a number computed on another machine


@dataclass(frozen=True)
class Output:
    """What a page prints of one run."""

    run: str
    keep: list[str] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)  # figure of the run -> file here
    timed: bool = False  # some numbers are times of a machine: numbers are not compared

    @property
    def words(self) -> list[str]:
        """The command's words after ``runner``."""
        return shlex.split(self.run)


def find_outputs(page: Path) -> list[Output]:
    """The outputs that a page prints."""
    text = page.read_text(encoding="utf-8")
    return [Output(**yaml.safe_load(match[2])) for match in BLOCK.finditer(text)]


def run(output: Output, folder: Path) -> str:
    """Runs a command in a folder; its standard output.

    Raises:
        RuntimeError: it fails.
    """
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "COLUMNS": str(COLUMNS),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "runner.commands.cli", *output.words, "tracking=false"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"runner {output.run}: {done.stderr.strip()}")
    return done.stdout


def select_lines(text: str, keep: list[str]) -> str:
    """Lines that match one of some regular expressions; others become one line "…".

    Blank lines are left out where some lines are.
    """
    lines: list[str] = []
    for line in text.splitlines():
        if keep and not line.strip():
            continue
        if not keep or any(re.search(pattern, line) for pattern in keep):
            lines.append(line.rstrip())
        elif not lines or lines[-1] != "…":
            lines.append("…")
    return "\n".join(lines).strip("\n") + "\n"


def copy_figures(output: Output, folder: Path) -> None:
    """Copies the figures of a run to where the pages show them."""
    for name, target in output.figures.items():
        (source,) = folder.glob(f"outputs/*/*/figures/{name}")
        (ROOT / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, ROOT / target)


def fill(page: Path, output_of: Callable[[Output], str]) -> str:
    """The page with new outputs."""

    def replace(match: re.Match[str]) -> str:
        output = Output(**yaml.safe_load(match[2]))
        return f"{match[1]}{select_lines(output_of(output), output.keep)}{match[4]}"

    return BLOCK.sub(replace, page.read_text(encoding="utf-8"))


def is_same_output(first: str, second: str, timed: bool = False) -> bool:
    """True if two outputs have the same words, and numbers that differ little.

    ``timed``: only the words are compared.

    Times, widths of columns, and signatures of runs do not count.
    """
    numbers = []
    words = []
    for text in (first, second):
        text = re.sub(r"\([\d.]+ s\)|\b[0-9a-f]{12}\b|[━─┏┳┓┡╇┩└┴┘]+|[+-](?=\d)", "", text)
        numbers.append([float(n.replace(",", "")) for n in NUMBER.findall(text)])
        words.append(NUMBER.sub("0", text).split())
    if words[0] != words[1] or timed:
        return words[0] == words[1]
    return all(
        abs(a - b) <= TOLERANCE * max(abs(a), abs(b), 0.1) for a, b in zip(*numbers, strict=True)
    )


def main(argv: list[str]) -> int:
    """Fills pages; with --check the exit code is 1 if one differs."""
    parser = argparse.ArgumentParser(prog="python -m scripts.page_outputs")
    parser.add_argument("page", nargs="*", type=Path, help="default: README and docs/methods")
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args(argv)
    differing = 0
    for page in arguments.page or PAGES:

        def run_and_copy(output: Output) -> str:
            with tempfile.TemporaryDirectory() as place:
                text = run(output, Path(place))
                if not arguments.check:
                    copy_figures(output, Path(place))
            return text

        old = page.read_text(encoding="utf-8")
        timed = any(output.timed for output in find_outputs(page))
        new = fill(page, run_and_copy)
        same = is_same_output(new, old, timed)
        differing += not same
        print(f"{page.name}: {'as it runs' if same else 'differs'}")
        if not arguments.check:
            write_text(page, new)
    return int(arguments.check and differing > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
