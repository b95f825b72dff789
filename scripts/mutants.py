"""Shows that the tests would notice: wrong science, a patch each (tests/mutants), is applied to a copy of the tree, and the
tests that the patch names must fail on it.

    python -m scripts.mutants                                     # all of them (make mutants)
    python -m scripts.mutants games filters/kalman attacks/cw_    # those of a family, or whose name begins so

A patch is a unified diff under two lines of its own: ``What:``, the mistake in a sentence, and ``Tests:``, arguments of
pytest.  A mutant that survives, a patch that no longer applies, tests that cannot be collected or that fail on the copy
as it is: each is a failure.  Exit code 1 where there is one.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import importlib
import multiprocessing
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import Queue

import pytest

ROOT = Path(__file__).parent.parent
PATCHES = ROOT / "tests" / "mutants"
COPIED = ("components", "conf", "docs", "runner", "scripts", "tests", "README.md", "pyproject.toml", "Makefile")
PATIENCE = 300  # seconds that the tests of a mutant may take
# What nearly every test imports and no patch touches: once, before the processes of the tests part from this one.
SHARED = ("torch", "scipy.stats", "sklearn.metrics", "hydra", "omegaconf", "pydantic", "pandas", "matplotlib.figure")
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Mutant:
    """One mistake, and the tests that are to find it."""

    name: str  # family/name
    patch: Path
    what: str
    tests: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Mutant:
        """Raises ValueError where a patch does not say what it is, or which tests."""
        facts = dict(line.split(": ", 1) for line in path.read_text(encoding="utf-8").splitlines()[:2] if ": " in line)
        if set(facts) != {"What", "Tests"}:
            raise ValueError(f"{path}: begins with a line What: and a line Tests:")
        name = str(path.relative_to(PATCHES).with_suffix(""))
        return cls(name, path, facts["What"], tuple(shlex.split(facts["Tests"])))


def mutants(beginnings: list[str]) -> list[Mutant]:
    """Those whose name begins with one of the words; all where there is none."""
    found = [Mutant.read(path) for path in sorted(PATCHES.rglob("*.patch"))]
    return [m for m in found if not beginnings or m.name.startswith(tuple(beginnings))]


def copied(folder: Path) -> Path:
    """A copy of the tree, compiled so that what a patch changes is seen whatever the clock says."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
        else:
            shutil.copy(ROOT / name, folder / name)
    for name in ("components", "runner"):
        compileall.compile_dir(folder / name, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return folder


def _session(copy: Path, words: tuple[str, ...], log: Path) -> None:
    """A pytest session on a copy, in a process of its own: it has imported none of the packages of this project."""
    os.chdir(copy)
    sys.dont_write_bytecode = True
    for name in [n for n in sys.modules if n.split(".")[0] in ("components", "runner", "scripts", "tests", "conf")]:
        del sys.modules[name]
    sys.path[:] = [str(copy), *(p for p in sys.path if p not in ("", str(ROOT)))]
    os.environ["PYTHONPATH"] = str(copy)
    with log.open("w", encoding="utf-8") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=line", "-m", "not slow"]
        os._exit(pytest.main([*options, *words]))


def outcome(copy: Path, words: tuple[str, ...]) -> tuple[int | None, str]:
    """Exit code of pytest on a copy (None: it took too long), and the last lines it printed."""
    log = copy / "session.log"
    process = FORK.Process(target=_session, args=(copy, words, log))
    process.start()
    process.join(PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
        return None, "too long"
    return process.exitcode, "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:])


def patched(copy: Path, patch: Path, *options: str) -> str:
    """What git complains of when a patch is applied to a copy; nothing where it was."""
    # Patches have no context: they fit as long as the very lines that they change are there, once.
    words = ["git", "apply", "--unidiff-zero", *options, str(patch)]
    # Without a repository around it: the copy is none.
    done = subprocess.run(words, cwd=copy, env=os.environ | {"GIT_DIR": os.devnull}, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else ""


def complaint(mutant: Mutant, copy: Path) -> str:
    """Why a mutant does not count as caught; nothing where it does."""
    if refused := patched(copy, mutant.patch):
        return f"the patch does not apply: {refused}"
    try:
        code, told = outcome(copy, mutant.tests)
    finally:
        patched(copy, mutant.patch, "--reverse")
    if code == pytest.ExitCode.TESTS_FAILED:
        return ""
    return "SURVIVES" if code == pytest.ExitCode.OK else f"its tests do not run ({code}):\n{told}"


def together(wanted: list[Mutant]) -> list[tuple[str, ...]]:
    """Sessions that run the tests of all of these mutants: one for all that name the same files."""
    expressions: dict[tuple[str, ...], set[str]] = {}
    for mutant in wanted:
        files, _, expression = " ".join(mutant.tests).partition(" -k ")
        expressions.setdefault(tuple(files.split()), set()).add(expression)
    return [
        files if "" in found else (*files, "-k", " or ".join(f"({e})" for e in sorted(found)))
        for files, found in expressions.items()
    ]


def judged(wanted: list[Mutant], jobs: int) -> list[str]:
    """Complaints about mutants, each said as it is found; so many at once, each in a copy of its own."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: Queue[Path] = Queue()
        for job in range(jobs):
            copies.put(copied(Path(folder) / str(job)))

        def in_a_copy(mutant: Mutant | None, words: tuple[str, ...]) -> str:
            copy, start = copies.get(), time.monotonic()
            try:
                if mutant is None:
                    code, told = outcome(copy, words)
                    found = "" if code == pytest.ExitCode.OK else f"fails without a mutant ({code}):\n{told}"
                    name = shlex.join(words)
                else:
                    found, name = complaint(mutant, copy), f"{mutant.name}: {mutant.what}"
            finally:
                copies.put(copy)
            if found or mutant:
                print(f"{found or 'caught'}  {name}  {time.monotonic() - start:.1f} s", flush=True)
            return f"{name}: {found}" if found else ""

        with ThreadPoolExecutor(jobs) as pool:
            tasks: list[tuple[Mutant | None, tuple[str, ...]]] = [(m, m.tests) for m in wanted]
            tasks += [(None, words) for words in together(wanted)]
            complaints = [c for c in pool.map(lambda task: in_a_copy(*task), tasks) if c]
    caught = len(wanted) - len([c for c in complaints if "without a mutant" not in c])
    print(f"{caught} of {len(wanted)} mutants caught in {time.monotonic() - began:.0f} s")
    return complaints


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.mutants", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="families, or beginnings of names (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at once (default: one per core)")
    given = parser.parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in SHARED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    wanted = mutants(given.names)
    if not wanted:
        print(f"no mutant of that name; families: {', '.join(sorted({m.name.split('/')[0] for m in mutants([])}))}")
        return 2
    return 1 if judged(wanted, given.jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
