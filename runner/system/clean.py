"""``runner clean``: removes files that are not results.

It removes smoke runs, leftovers of killed processes and checkpoints of runs that are
done.

It lists the files and how many MB, and asks first.  A run that is going is not touched,
nor one with a file named ``keep`` in its folder, nor the target of a link.
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
from runner.terminal.tables import print_table

KINDS = {
    "smoke": "records of smoke runs",
    "orphans": "files and folders that killed processes left",
    "checkpoints": "checkpoints of runs that are done",
}
MLFLOW_ARTEFACT_FOLDER = "artefacts"  # MLflow's, which none of our commands writes piece by piece
KEEP_MARKER_NAME = "keep"  # a user's own mark: the run is skipped
SHOWN = 12  # of each kind, on a terminal


@dataclass(frozen=True)
class Leftover:
    """Something to remove: its kind, its path, and the run to lock for it."""

    kind: str
    path: Path
    run: Path | None  # None: of no run

    @property
    def size(self) -> int:
        """Bytes; links are not followed."""
        inside = [self.path, *self.path.rglob("*")] if self.path.is_dir() else [self.path]
        return sum(path.lstat().st_size for path in inside if path.is_symlink() or path.is_file())


def find_leftovers(output_dir: Path) -> Iterator[Leftover]:
    """Files under an output folder that are not results, of runs neither kept nor going."""
    for run in runs(output_dir):
        with skip_unreadable(run):
            yield from _find_leftovers_in_run(run)


def _find_leftovers_in_run(run: Path) -> Iterator[Leftover]:
    """Litter in the folder of one run; its record is read before it is said to be removable.

    Raises:
        PermissionError: this user may not read it.
    """
    if (run / KEEP_MARKER_NAME).exists() or is_leased(run / NAME):
        return
    facts = load_facts(run)
    if facts is not None and facts.get("smoke") is True:
        yield Leftover("smoke", run, run)
        return
    if facts is None and not traces(run):
        list(run.iterdir())  # nothing of a run, as far as this user may read
        yield Leftover("orphans", run, run)
        return
    yield from (Leftover("orphans", path, run) for path in orphans(run))
    checkpoints = run / "checkpoints"
    if facts is not None and facts["state"] == "done" and checkpoints.is_dir():
        yield Leftover("checkpoints", checkpoints, run)


def is_run_folder(path: Path) -> bool:
    """True for a folder that has the name of a run's."""
    return bool(re.fullmatch(r"[0-9a-f]{12}", path.name)) and path.is_dir()


def runs(output_dir: Path) -> list[Path]:
    """Folders of runs under an output folder; what a link leads to is somebody else's."""
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
    """Removes it, unless its run has begun to go in the meantime, or this user may not."""
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
    """Bytes as MB."""
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
        print_table("", ("kind", "what", "size"), lines)
        if more := len(members) - len(largest):
            print(f"… and {more} more")
        print(
            f"{KINDS[kind]}: {len(members)}, {format_megabytes(sum(litter.size for litter in members))}"
        )


def _confirm() -> bool:
    """Answer of the user.

    Raises:
        ConfigError: there is nobody to answer.
    """
    if not sys.stdin.isatty():
        raise ConfigError(
            "clean: nobody is here to be asked; give --yes to remove these, --dry-run to list them only"
        )
    print("remove these? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def main(argv: list[str]) -> int:
    """Lists, asks and removes."""
    parser = Parser(
        prog="runner clean",
        description="Removes "
        + "; ".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items())
        + ". It lists them with "
        "their size and asks first. Runs that are going, and runs whose folder holds a file named keep, are left alone.",
        epilog="A done run without its checkpoints shows its record as before. Exit code 0, or 2 for a mistake.",
    )
    parser.add_argument("kind", nargs="*", help=f"{', '.join(KINDS)} (default: all)")
    parser.add_argument("--yes", action="store_true", help="remove without asking")
    parser.add_argument("--dry-run", action="store_true", help="list only")
    add_output_dir(parser, must_exist=True)
    arguments = parser.parse_args(argv[1:])
    if wrong := [kind for kind in arguments.kind if kind not in KINDS]:
        raise ConfigError(f"clean: {wrong[0]} is none of {', '.join(KINDS)}")
    output_dir = Path(arguments.output_dir)
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
    print(f"removed  {len(gone)} of {len(litters)}, {format_megabytes(sum(gone))}")
    return 0
