"""Mutation tests: scientific errors are introduced into a copy of the tree, and the named tests must
detect them.

    python -m scripts.mutants                                     # mutants of tests/mutants
    python -m scripts.mutants games filters/kalman attacks/cw_    # a family, or prefixes of names
    python -m scripts.mutants --generated 150 --seed 3            # with a sample of generated mutants (make mutants)

Mutants are listed in ``tests/mutants/<family>.yaml``: ``what`` describes the error in a sentence,
``tests`` are arguments of pytest, ``edits`` replace expressions or statements of named functions
(``scripts.mutant_edits``).  Failures are: a surviving mutant, an edit that no longer matches, and
tests that cannot be collected or that fail on the unchanged copy.  The exit code is 1 if there are
any.

Generated mutants (``scripts.mutant_operators``) are a random sample.  Survivors are listed but do not
count as failures: some are equivalent, or are detected by tests in other folders."""

from __future__ import annotations

import argparse
import compileall
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import Queue

import pytest
import yaml

from scripts.mutant_edits import Edit, apply_edits
from scripts.mutant_operators import generate_edits, list_tests

ROOT = Path(__file__).parent.parent
MUTANTS = ROOT / "tests" / "mutants"
FOLDERS = ("components", "conf", "docs", "runner", "scripts", "tests")
FILES = ("README.md", "pyproject.toml", "Makefile")
TIMEOUT_SECONDS = 300  # limit for the tests of a mutant
GENERATED = "generated"
PYTEST = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=line", "-m"]


@dataclass(frozen=True)
class Mutant:
    """An error, and the tests that must detect it."""

    name: str  # family/name
    what: str
    tests: tuple[str, ...]
    edits: tuple[Edit, ...]


def read_mutants(path: Path) -> list[Mutant]:
    """Mutants in the file of a family.

    Raises:
        ValueError: an entry lacks a key or has an unknown one.
    """
    mutants = []
    for entry in yaml.safe_load(path.read_text(encoding="utf-8")):
        try:
            edits = tuple(Edit(**edit) for edit in entry["edits"])
            words = tuple(shlex.split(entry["tests"]))
            mutants.append(Mutant(f"{path.stem}/{entry['name']}", entry["what"], words, edits))
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path}: {entry.get('name')}: {error}") from None
    return mutants


def select_mutants(beginnings: Sequence[str]) -> list[Mutant]:
    """Mutants with names that begin with one of the words; all for an empty list."""
    mutants = [m for path in sorted(MUTANTS.glob("*.yaml")) for m in read_mutants(path)]
    return [m for m in mutants if not beginnings or m.name.startswith(tuple(beginnings))]


def generate_mutants(count: int, seed: int) -> list[Mutant]:
    """Random sample of generated mutants of functions with a source and tests."""
    mutants = (
        Mutant(f"{GENERATED}/{edit.file}", f"{edit.old} -> {edit.new}", tests, (edit,))
        for edit in generate_edits(ROOT, seed)
        if (tests := list_tests(ROOT, edit.file))
    )
    return list(islice(mutants, count))


def copy_tree(folder: Path) -> Path:
    """Copy the tree, compiled so that edits take effect independent of time stamps."""
    ignored = shutil.ignore_patterns("__pycache__", "results")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    for name in ("components", "runner"):
        mode = PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(folder / name, quiet=2, invalidation_mode=mode)
    return folder


def run_tests(copy: Path, words: Sequence[str]) -> tuple[int | None, str]:
    """Exit code of pytest on a copy (None after a timeout), and its last lines of output."""
    command = [sys.executable, "-m", "pytest", *PYTEST, "not slow", *words]
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return None, "too long"
    return done.returncode, "\n".join(done.stdout.splitlines()[-8:])


def find_complaint(mutant: Mutant, copy: Path) -> str:
    """Reason why a mutant does not count as detected, or empty."""
    try:
        originals = apply_edits(copy, mutant.edits)
    except ValueError as error:
        return f"an edit does not match: {error}"
    try:
        code, output = run_tests(copy, mutant.tests)
    finally:
        for path, source in originals.items():
            path.write_text(source, encoding="utf-8")
    if code == pytest.ExitCode.TESTS_FAILED:
        return ""
    return (
        "SURVIVES" if code == pytest.ExitCode.OK else f"its tests cannot be run ({code}):\n{output}"
    )


def join_sessions(mutants: Sequence[Mutant]) -> list[tuple[str, ...]]:
    """Test sessions for all mutants, one for those with the same files."""
    expressions: dict[str, set[str]] = {}
    for mutant in mutants:
        files, _, expression = " ".join(mutant.tests).partition(" -k ")
        expressions.setdefault(files, set()).add(expression)
    return [
        (
            *files.split(),
            *([] if "" in each else ["-k", " or ".join(f"({e})" for e in sorted(each))]),
        )
        for files, each in expressions.items()
    ]


def check_unchanged(words: Sequence[str], copy: Path) -> str:
    """Error message if tests fail without a mutant, or empty."""
    code, output = run_tests(copy, words)
    return "" if code == pytest.ExitCode.OK else f"fails without a mutant ({code}):\n{output}"


def judge(mutants: Sequence[Mutant], jobs: int) -> list[str]:
    """Problems of mutants and their tests, printed immediately.

    ``jobs`` mutants are tested in parallel, each in a copy of the tree.
    """
    began = time.monotonic()
    tasks: list[tuple[str, Callable[[Path], str]]] = [
        (f"{m.name}: {m.what}", lambda copy, m=m: find_complaint(m, copy)) for m in mutants
    ]
    tasks += [
        (shlex.join(words), lambda copy, words=words: check_unchanged(words, copy))
        for words in join_sessions(mutants)
    ]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        copies: Queue[Path] = Queue()
        for job in range(jobs):
            copies.put(copy_tree(Path(folder) / str(job)))

        def run_in_copy(task: tuple[str, Callable[[Path], str]]) -> str:
            name, check = task
            copy = copies.get()
            start = time.monotonic()
            try:
                complaint = check(copy)
            finally:
                copies.put(copy)
            print(f"{complaint or 'fine'}  {name}  {time.monotonic() - start:.1f} s", flush=True)
            return f"{name}: {complaint}" if complaint else ""

        complaints = list(pool.map(run_in_copy, tasks))
    caught = complaints[: len(mutants)].count("")
    print(f"{caught} of {len(mutants)} mutants caught in {time.monotonic() - began:.0f} s")
    return [complaint for complaint in complaints if complaint]


def main(argv: list[str] | None = None) -> int:
    """Test the selected mutants; return 1 if one of tests/mutants fails."""
    parser = argparse.ArgumentParser(prog="python -m scripts.mutants")
    parser.add_argument("names", nargs="*", help="families, or prefixes of names (default: all)")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="number of parallel mutants (default: cores)",
    )
    parser.add_argument(
        "--generated", type=int, default=0, metavar="N", help="number of generated mutants"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    arguments = parser.parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    mutants = select_mutants(arguments.names)
    if not mutants:
        families = ", ".join(path.stem for path in sorted(MUTANTS.glob("*.yaml")))
        print(f"no mutant has that name; families: {families}")
        return 2
    mutants += generate_mutants(arguments.generated, arguments.seed)
    complaints = judge(mutants, arguments.jobs)
    return int(any(not complaint.startswith(GENERATED) for complaint in complaints))


if __name__ == "__main__":
    sys.exit(main())
