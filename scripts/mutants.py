"""Mutation tests: wrong science is put into a copy of the tree, and named tests must fail on it.

    python -m scripts.mutants                                     # all of them (make mutants)
    python -m scripts.mutants games filters/kalman attacks/cw_    # a family, or names that begin so

Mutants are listed in ``tests/mutants/<family>.yaml``: ``what`` is the mistake in a sentence,
``tests`` are arguments of pytest, ``edits`` replace expressions or statements of named functions
(``scripts.mutant_edits``).  Failures are: a mutant that survives, an edit that no longer fits,
tests that cannot be collected or that fail on the unchanged copy.  Exit code 1 if there is any."""

from __future__ import annotations

import argparse
import compileall
import contextlib
import importlib
import multiprocessing
import os
import shlex
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import Queue

import pytest
import yaml

from scripts.mutant_edits import Edit, apply_edits

ROOT = Path(__file__).parent.parent
MUTANTS = ROOT / "tests" / "mutants"
COPIED = (
    "components",
    "conf",
    "docs",
    "runner",
    "scripts",
    "tests",
    "README.md",
    "pyproject.toml",
    "Makefile",
)
TIMEOUT_SECONDS = 300  # for the tests of a mutant
# Imported by nearly every test and touched by no edit: loaded before the test processes fork.
SHARED = (
    "torch",
    "scipy.stats",
    "sklearn.metrics",
    "hydra",
    "omegaconf",
    "pydantic",
    "pandas",
    "matplotlib.figure",
)
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Mutant:
    """A mistake, and the tests that must find it."""

    name: str  # family/name
    what: str
    tests: tuple[str, ...]
    edits: tuple[Edit, ...]


def read_mutants(path: Path) -> list[Mutant]:
    """Mutants of a family's file.

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


def select_mutants(beginnings: list[str]) -> list[Mutant]:
    """Mutants with a name that begins with one of the words; all for an empty list."""
    mutants = [m for path in sorted(MUTANTS.glob("*.yaml")) for m in read_mutants(path)]
    return [m for m in mutants if not beginnings or m.name.startswith(tuple(beginnings))]


def copied(folder: Path) -> Path:
    """A copy of the tree, compiled so that an edit is seen at any time stamp."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "results")
            )
        else:
            shutil.copy(ROOT / name, folder / name)
    for name in ("components", "runner"):
        compileall.compile_dir(
            folder / name, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH
        )
    return folder


def _session(copy: Path, words: tuple[str, ...], log: Path) -> None:
    """A pytest session on a copy, in a process of its own: it has imported none of the packages of
    this project."""
    os.chdir(copy)
    sys.dont_write_bytecode = True
    for name in [
        n
        for n in sys.modules
        if n.split(".")[0] in ("components", "runner", "scripts", "tests", "conf")
    ]:
        del sys.modules[name]
    sys.path[:] = [str(copy), *(p for p in sys.path if p not in ("", str(ROOT)))]
    os.environ["PYTHONPATH"] = str(copy)
    with log.open("w", encoding="utf-8") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
        options = [
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--no-header",
            "--tb=line",
            "-m",
            "not slow",
        ]
        os._exit(pytest.main([*options, *words]))


def outcome(copy: Path, words: tuple[str, ...]) -> tuple[int | None, str]:
    """Exit code of pytest on a copy (None: it took too long), and the last lines it printed."""
    log = copy / "session.log"
    process = FORK.Process(target=_session, args=(copy, words, log))
    process.start()
    process.join(TIMEOUT_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
        return None, "too long"
    return process.exitcode, "\n".join(
        log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:]
    )


def complaint(mutant: Mutant, copy: Path) -> str:
    """Why a mutant does not count as caught; empty if it does."""
    try:
        before = apply_edits(copy, mutant.edits)
    except ValueError as error:
        return f"an edit does not fit: {error}"
    try:
        code, output = outcome(copy, mutant.tests)
    finally:
        for path, source in before.items():
            path.write_text(source, encoding="utf-8")
    if code == pytest.ExitCode.TESTS_FAILED:
        return ""
    return "SURVIVES" if code == pytest.ExitCode.OK else f"its tests do not run ({code}):\n{output}"


def together(wanted: list[Mutant]) -> list[tuple[str, ...]]:
    """Sessions that run the tests of all of these mutants: one for all that name the same files."""
    expressions: dict[tuple[str, ...], set[str]] = {}
    for mutant in wanted:
        files, _, expression = " ".join(mutant.tests).partition(" -k ")
        expressions.setdefault(tuple(files.split()), set()).add(expression)
    return [
        files if "" in keywords else (*files, "-k", " or ".join(f"({e})" for e in sorted(keywords)))
        for files, keywords in expressions.items()
    ]


def judged(wanted: list[Mutant], jobs: int) -> list[str]:
    """Complaints about mutants, each said as it is found; so many at once, each in a copy of its
    own."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: Queue[Path] = Queue()
        for job in range(jobs):
            copies.put(copied(Path(folder) / str(job)))

        def in_a_copy(mutant: Mutant | None, words: tuple[str, ...]) -> str:
            copy, start = copies.get(), time.monotonic()
            try:
                if mutant is None:
                    code, output = outcome(copy, words)
                    problem = (
                        ""
                        if code == pytest.ExitCode.OK
                        else f"fails without a mutant ({code}):\n{output}"
                    )
                    name = shlex.join(words)
                else:
                    problem, name = complaint(mutant, copy), f"{mutant.name}: {mutant.what}"
            finally:
                copies.put(copy)
            if problem or mutant:
                print(
                    f"{problem or 'caught'}  {name}  {time.monotonic() - start:.1f} s", flush=True
                )
            return f"{name}: {problem}" if problem else ""

        with ThreadPoolExecutor(jobs) as pool:
            tasks: list[tuple[Mutant | None, tuple[str, ...]]] = [(m, m.tests) for m in wanted]
            tasks += [(None, words) for words in together(wanted)]
            complaints = [c for c in pool.map(lambda task: in_a_copy(*task), tasks) if c]
    caught = len(wanted) - len([c for c in complaints if "without a mutant" not in c])
    print(f"{caught} of {len(wanted)} mutants caught in {time.monotonic() - began:.0f} s")
    return complaints


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.mutants", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("names", nargs="*", help="families, or beginnings of names (default: all)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="at once (default: one per core)"
    )
    arguments = parser.parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in SHARED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    mutants = select_mutants(arguments.names)
    if not mutants:
        print(
            f"no mutant of that name; families: {', '.join(sorted({m.name.split('/')[0] for m in select_mutants([])}))}"
        )
        return 2
    return 1 if judged(mutants, arguments.jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
