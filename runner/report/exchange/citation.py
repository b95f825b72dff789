"""Citation of an archive: ``CITATION.cff``, and its description as a research object.

Source: Citation File Format 1.2.0; RO-Crate Metadata Specification 1.1.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from runner.record.code import installed_version
from runner.study.snapshot import Snapshot
from runner.terminal.templates import environment

NAMES = ("CITATION.cff", "ro-crate-metadata.json")


def add_origin(parser: argparse.ArgumentParser) -> None:
    """Add the options for the citation of an archive."""
    parser.add_argument("--author", help="author to cite (default: the name in git's settings)")
    parser.add_argument(
        "--licence", metavar="SPDX", help="licence of the archive, such as CC-BY-4.0"
    )


def write_citation(
    snapshot: Snapshot,
    author: str | None,
    licence: str | None,
    files: Mapping[str, tuple[str, int]],
) -> Iterator[tuple[str, bytes]]:
    """Names and contents of both files; the second describes the first and ``files`` (SHA-256 and
    size by name).
    """
    context = {
        "study": snapshot,
        "author": author or _ask_git(),
        "licence": licence,
        "version": installed_version("bayes-runner") or "unknown",
        "files": files,
    }
    templates = environment(Path(__file__).parent)
    for name in NAMES:
        yield name, templates.get_template(f"{name}.j2").render(context).encode()


def _ask_git() -> str:
    command = ["git", "config", "user.name"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
