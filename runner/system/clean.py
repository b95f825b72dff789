"""``runner clean``: removes what is no result: smoke runs, what killed processes left, checkpoints of runs that are done.

It lists what and how many MB, and asks first.  A run that is going is not touched, nor one whose folder holds a file of the
name ``keep``."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from runner.arguments import Parser
from runner.mistakes import ConfigError
from runner.record.atomic import orphans
from runner.record.facts import read
from runner.record.lease import NAME, held, taken
from runner.record.rebuild import KEEP, traces
from runner.tables import print_table

KINDS = {
    "smoke": "records of smoke runs",
    "orphans": "files and folders that killed processes left",
    "checkpoints": "checkpoints of runs that are done",
}
SHOWN = 12  # of each kind, on a terminal


@dataclass(frozen=True)
class Litter:
    """Something to remove: of which kind, where, and the run whose lock is taken for it."""

    kind: str
    path: Path
    run: Path

    @property
    def size(self) -> int:
        """Bytes; links are not followed."""
        inside = [self.path, *self.path.rglob("*")] if self.path.is_dir() else [self.path]
        return sum(path.lstat().st_size for path in inside if path.is_symlink() or path.is_file())


def found(output_dir: Path) -> Iterator[Litter]:
    """What lies under an output folder that is no result, of runs that are neither kept nor going."""
    for run in sorted(output_dir.glob("*/*")):
        if not re.fullmatch(r"[0-9a-f]{12}", run.name) or run.is_symlink() or not run.is_dir():
            continue
        if (run / KEEP).exists() or held(run / NAME):
            continue
        facts = read(run)
        if facts is not None and facts.get("smoke") is True:
            yield Litter("smoke", run, run)
            continue
        if facts is None and not traces(run):
            yield Litter("orphans", run, run)
            continue
        yield from (Litter("orphans", path, run) for path in orphans(run))
        if facts is not None and facts["state"] == "done" and (run / "checkpoints").is_dir():
            yield Litter("checkpoints", run / "checkpoints", run)


def remove(litter: Litter) -> bool:
    """Removes it, unless its run has begun to go in the meantime."""
    if not litter.path.exists():
        return False
    try:
        lease = taken(litter.run, litter.run.name)
    except ConfigError:
        return False
    with closing(lease):
        if litter.path.is_dir():
            shutil.rmtree(litter.path)
        else:
            litter.path.unlink()
    return True


def mb(size: int) -> str:
    """Bytes as MB."""
    return f"{size / 1e6:,.1f} MB"


def _list(litters: Iterable[Litter], output_dir: Path) -> None:
    by: dict[str, list[Litter]] = {}
    for litter in litters:
        by.setdefault(litter.kind, []).append(litter)
    for kind, of in by.items():
        shown = sorted(of, key=lambda litter: -litter.size)
        shown = shown[:SHOWN] if sys.stdout.isatty() else shown
        lines = [(kind, str(litter.path.relative_to(output_dir)), mb(litter.size)) for litter in shown]
        print_table("", ("kind", "what", "size"), lines)
        if more := len(of) - len(shown):
            print(f"… and {more} more")
        print(f"{KINDS[kind]}: {len(of)}, {mb(sum(litter.size for litter in of))}")


def _agreed() -> bool:
    """What the user answers.

    Raises:
        ConfigError: there is nobody to answer.
    """
    if not sys.stdin.isatty():
        raise ConfigError("clean: nobody is here to be asked; give --yes to remove these, --dry-run to list them only")
    print("remove these? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def main(argv: list[str]) -> int:
    """Lists, asks and removes."""
    parser = Parser(
        prog="runner clean",
        description="Removes " + "; ".join(f"{kind}: {what}" for kind, what in KINDS.items()) + ". It lists them with "
        "their size and asks first. Runs that are going, and runs whose folder holds a file named keep, are left alone.",
        epilog="A done run without its checkpoints shows its record as before. Exit code 0, or 2 for a mistake.",
    )  # fmt: skip
    parser.add_argument("kind", nargs="*", help=f"{', '.join(KINDS)} (default: all)")
    parser.add_argument("--yes", action="store_true", help="remove without asking")
    parser.add_argument("--dry-run", action="store_true", help="list only")
    parser.add_argument("--output-dir", default="outputs", help="where runs are recorded (default: outputs)")
    given = parser.parse_args(argv[1:])
    if wrong := [kind for kind in given.kind if kind not in KINDS]:
        raise ConfigError(f"clean: {wrong[0]} is none of {', '.join(KINDS)}")
    output_dir = Path(given.output_dir)
    litters = [litter for litter in found(output_dir) if litter.kind in (given.kind or KINDS)]
    if not litters:
        print(f"nothing to remove under {output_dir}")
        return 0
    _list(litters, output_dir)
    if given.dry_run or not (given.yes or _agreed()):
        print("nothing was removed")
        return 0
    sizes = [litter.size for litter in litters]
    gone = [size for litter, size in zip(litters, sizes, strict=True) if remove(litter)]
    print(f"removed  {len(gone)} of {len(litters)}, {mb(sum(gone))}")
    return 0
