"""``runner clean``: remove smoke runs, leftovers of killed processes and checkpoints of finished
runs.

It lists the files with their sizes and asks for confirmation.  Active runs, runs with a file named
``keep`` in their folder, and targets of links are not removed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from runner.disk.atomic import orphans
from runner.errors import ConfigError
from runner.record.facts import list_folder, load_facts, skip_unreadable
from runner.record.lease import is_leased, take_lease
from runner.record.lease_holder import NAME
from runner.record.lines import traces
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.tables import print_named, print_table

KINDS = {
    "smoke": "records of smoke runs",
    "orphans": "files and folders of killed processes",
    "checkpoints": "checkpoints of finished runs",
}
MLFLOW_ARTEFACT_FOLDER = "artefacts"  # written only by MLflow
KEEP_MARKER_NAME = "keep"  # file created by users to keep a run
COLUMNS = ("kind", "what", "size")
SHOWN = 12  # largest number of printed files of each kind


@dataclass(frozen=True)
class Leftover:
    """A file or folder to remove: its kind, its path, and the run to lock."""

    kind: str
    path: Path
    run: Path | None  # None if outside runs

    @property
    def size(self) -> int:
        """Size in bytes, without following links."""
        inside = [self.path, *self.path.rglob("*")] if self.path.is_dir() else [self.path]
        return sum(path.lstat().st_size for path in inside if path.is_symlink() or path.is_file())


def find_leftovers(output_dir: Path) -> Iterator[Leftover]:
    """Removable files under an output folder, without kept and active runs."""
    for run in runs(output_dir):
        with skip_unreadable(run):
            yield from _find_leftovers_in_run(run)


def _find_leftovers_in_run(run: Path) -> Iterator[Leftover]:
    """Removable files in the folder of a run, according to its record.

    Raises:
        PermissionError: the record is not readable for this user.
    """
    if (run / KEEP_MARKER_NAME).exists() or is_leased(run / NAME):
        return
    facts = load_facts(run)
    if facts is not None and facts.get("smoke") is True:
        yield Leftover("smoke", run, run)
        return
    if facts is None and not traces(run):
        list(run.iterdir())  # not a run, as far as readable
        yield Leftover("orphans", run, run)
        return
    yield from (Leftover("orphans", path, run) for path in orphans(run))
    checkpoints = run / "checkpoints"
    if facts is not None and facts["state"] == "done" and checkpoints.is_dir():
        yield Leftover("checkpoints", checkpoints, run)


def is_run_folder(path: Path) -> bool:
    """True if a folder is named like a run."""
    return bool(re.fullmatch(r"[0-9a-f]{12}", path.name)) and path.is_dir()


def runs(output_dir: Path) -> list[Path]:
    """Folders of runs under an output folder, without following links."""
    experiments = [
        folder for folder in list_folder(output_dir) if folder.is_dir() and not folder.is_symlink()
    ]
    run_folders = list[Path]()
    for folder in experiments:
        with skip_unreadable(folder):
            run_folders += [
                run for run in list_folder(folder) if is_run_folder(run) and not run.is_symlink()
            ]
    return run_folders


def unfinished_files(output_dir: Path) -> Iterator[Leftover]:
    """Unfinished files of killed reports, studies and sweeps, outside the folders of runs."""
    for place, folders, _ in os.walk(output_dir):  # links are not followed
        folder = Path(place)
        folders[:] = [
            name
            for name in folders
            if not is_run_folder(folder / name) and name != MLFLOW_ARTEFACT_FOLDER
        ]
        for path in orphans(folder, inside=False):
            if not path.is_symlink():
                yield Leftover("orphans", path, None)


def remove(litter: Leftover) -> bool:
    """Remove a leftover, unless its run has become active or permission is denied; return the
    freed bytes."""
    with skip_unreadable(litter.run or litter.path), ExitStack() as stack:
        if not litter.path.exists():
            return False
        if litter.run is not None:
            try:
                stack.enter_context(closing(take_lease(litter.run, litter.run.name)))
            except ConfigError:
                return False
        if litter.path.is_dir():
            shutil.rmtree(litter.path)
        else:
            litter.path.unlink()
        return True
    return False


def format_megabytes(size: int) -> str:
    """Format bytes as MB."""
    return f"{size / 1e6:,.1f} MB"


def _list(litters: Iterable[Leftover], output_dir: Path) -> None:
    by: dict[str, list[Leftover]] = {}
    for litter in litters:
        by.setdefault(litter.kind, []).append(litter)
    for kind, members in by.items():
        largest = sorted(members, key=lambda litter: -litter.size)
        largest = largest[:SHOWN] if sys.stdout.isatty() else largest
        lines = [
            (kind, str(litter.path.relative_to(output_dir)), format_megabytes(litter.size))
            for litter in largest
        ]
        print_table("", COLUMNS, lines)
        if more := len(members) - len(largest):
            print(f"… and {more} more")
        print(
            f"{KINDS[kind]}: {len(members)}, {format_megabytes(sum(litter.size for litter in members))}"
        )


def _confirm() -> bool:
    """Ask the user for confirmation.

    Raises:
        ConfigError: standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise ConfigError(
            "clean: cannot ask without a terminal; add --yes to remove these files, --dry-run to only list them"
        )
    print("remove these files? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def main(argv: list[str]) -> int:
    """List the files, ask for confirmation and remove them."""
    parser = Parser(
        description="Removes "
        + "; ".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items())
        + ". It lists them with "
        "their sizes and asks for confirmation. Active runs, and runs with a file named keep in their folder, are kept.",
        epilog="Finished runs remain readable without checkpoints. Exit code 0, or 2 for invalid arguments.",
    )
    parser.add_argument("kind", nargs="*", help=f"{', '.join(KINDS)} (default: all)")
    parser.add_argument("--yes", action="store_true", help="remove without confirmation")
    parser.add_argument("--dry-run", action="store_true", help="list only")
    add_output_dir(parser, must_exist=True)
    arguments = parser.parse(argv)
    if wrong := [kind for kind in arguments.kind if kind not in KINDS]:
        raise ConfigError(f"clean: {wrong[0]} must be one of {', '.join(KINDS)}")
    output_dir = arguments.output_dir
    kinds = arguments.kind or list(KINDS)
    everything = chain(find_leftovers(output_dir), unfinished_files(output_dir))
    litters = [litter for litter in everything if litter.kind in kinds]
    if not litters:
        print(f"nothing to remove under {output_dir}")
        return 0
    _list(litters, output_dir)
    if arguments.dry_run or not (arguments.yes or _confirm()):
        print("nothing was removed")
        return 0
    sizes = [litter.size for litter in litters]
    gone = [size for litter, size in zip(litters, sizes, strict=True) if remove(litter)]
    print_named("removed", f"{len(gone)} of {len(litters)}, {format_megabytes(sum(gone))}")
    return 0
