"""``runner arena verify FILE``: recompute randomly drawn cells of a pack in child processes.

A cell is one replicate of one run; a run with vectorised replicates is one cell.  Four conditions
must hold:

1. problems, budget and replicates equal those in the local suite;
2. the pack's table of scores agrees with its records;
3. the scores of each record agree with its last evaluation;
4. each drawn cell, run again, reproduces its scores except times.

A child process has no access to the folder or the plug-ins of this process (``python -P``): it
imports only packed plug-ins, and these only with ``--trust``.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from runner.arena.packed import (
    PackedCell,
    Scores,
    check_records,
    check_table,
    list_cells,
    list_deviations,
    list_differences,
)
from runner.disk import conf_folders
from runner.disk.scratch import scratch_folder
from runner.errors import ConfigError
from runner.execution.signals import ALONE
from runner.record import code
from runner.record.facts import read_facts_or_warn
from runner.report.exchange.archive import PLUGINS
from runner.report.exchange.opened import OpenedArchive, open_archive
from runner.report.wording import join_some
from runner.study import snapshot as snapshots
from runner.study.snapshot import Snapshot
from runner.terminal.arguments import Parser
from runner.terminal.printer import complain, out
from runner.terminal.tables import print_named

SHOWN = 3  # scores that differ, a cell


def compute_again(
    cell: PackedCell, snapshot: Snapshot, plugins: Path | None
) -> tuple[Scores | None, str]:
    """Scores of a cell computed by a child process (None after a failure), and its last line of
    output.
    """
    path = snapshot.file
    command = [sys.executable, "-P", "-m", "runner.study.one_run", str(path), cell.run.name]
    paths = [str(path) for path in (code.ROOT, plugins) if path is not None]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    if cell.replicate is not None:
        environment[ALONE] = str(cell.replicate)
    child = subprocess.run(
        command,
        env=environment,
        cwd=snapshot.output_dir,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    facts = read_facts_or_warn(snapshot.folder(cell.run)) or {"finished": {}}
    scores: Scores | None = facts["finished"].get(str(cell.replicate or 0))
    output = (child.stderr.strip() or child.stdout.strip()).splitlines()
    return scores, output[-1] if output else f"exit code {child.returncode}"


def find_plugins(opened: OpenedArchive, snapshot: Snapshot, is_trusted: bool) -> Path | None:
    """Folder of the packed plug-ins; None if no run requires one.

    Raises:
        ConfigError: the plug-ins are not trusted, or their source is not in the pack.
    """
    if not snapshot.plugins:
        return None
    folder = opened.folder / PLUGINS
    if not folder.is_dir():
        raise ConfigError(
            f"{', '.join(snapshot.plugins)}: not in the pack; its runs cannot be computed"
        )
    if not is_trusted:
        files = ", ".join(sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.py")))
        raise ConfigError(
            f"its runs execute code of the pack ({files} in {PLUGINS}/): read it, then add --trust"
        )
    return folder


def draw_cells(cells: list[PackedCell], count: str, seed: int) -> list[PackedCell]:
    """Cells to recompute, drawn without replacement.

    Raises:
        ConfigError: the count is neither a positive integer nor the word all.
    """
    if count == "all":
        return cells
    if not count.isdecimal() or int(count) < 1:
        raise ConfigError(f"--cells {count}: give a number from 1, or all")
    return random.Random(seed).sample(cells, min(int(count), len(cells)))


def verify_opened(opened: OpenedArchive, arguments: argparse.Namespace) -> int:
    """Check an opened pack; return 0 if everything agrees, 1 if something differs.

    Raises:
        ConfigError: the pack has no study or no finished run, or its code is not trusted.
    """
    snapshot = snapshots.load(opened.study, opened.folder)
    cells = [] if snapshot is None else list_cells(snapshot)
    if snapshot is None or not cells:
        raise ConfigError(f"{arguments.file}: contains no finished run")
    wrong = [*list_deviations(snapshot), *check_table(opened, snapshot)]
    wrong += check_records(snapshot, cells)
    for fault in wrong:
        complain(fault)
    plugins = find_plugins(opened, snapshot, arguments.trust)
    drawn = draw_cells(cells, arguments.cells, arguments.seed)
    agreeing = 0
    with scratch_folder() as place:
        data_dir = str(Path(arguments.data_dir).resolve())
        paths = {"data_dir": data_dir, "output_dir": str(place), "tracking": False}
        runs = [replace(run, config={**run.config, **paths}) for run in snapshot.runs]
        again = replace(snapshot, runs=runs, output_dir=place)
        snapshots.save(again)
        for cell in drawn:
            scores, output = compute_again(cell, again, plugins)
            if scores is None:
                differing = [f"not computed: {output}"]
            else:
                differing = list(list_differences(cell.scores, scores, arguments.tolerance))
            agreeing += not differing
            shown = join_some(differing, "; ", SHOWN)
            out.print(f"{'differs' if differing else 'agrees '}  {cell.name}  {shown}".rstrip())
    facts = cells[0].facts
    versions = {**facts["git"], "versions": facts["versions"]}
    if apart := code.difference(versions, code.identity(code.commit(), code.versions())):
        print_named("code", apart)
    chance = 1.0 - len(drawn) / len(cells)
    print_named(
        "result",
        f"{agreeing} of {len(drawn)} cells agree (of {len(cells)}; seed {arguments.seed}); a single "
        f"changed cell would go undetected with probability {chance:.2f}",
    )
    return int(bool(wrong) or agreeing < len(drawn))


def verify(argv: list[str]) -> int:
    """Recompute cells of a pack; return 0 if all agree, 1 if something differs, 2 if this is not
    possible.
    """
    parser = Parser(
        description="Checks the scores of a pack and recomputes some of its cells.",
        epilog="Exit code 0 if all agree, 1 if something differs, 2 if nothing could be computed.",
    )
    conf_folders.add_option(parser)
    parser.add_argument("file", help="file written by runner arena pack or runner archive")
    parser.add_argument(
        "--cells", default="5", metavar="N", help="number of cells, or all (default: 5)"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=secrets.randbelow(10**6),
        help="seed for drawing the cells (default: random, and printed)",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=1e-6,
        help="relative tolerance of a score (default: 1e-6; processors round differently)",
    )
    parser.add_argument("--trust", action="store_true", help="let the plug-ins of the pack run")
    parser.add_argument(
        "--data-dir",
        default=os.environ.get("RUNNER_DATA_DIR", "data"),
        help="data files (default: $RUNNER_DATA_DIR or data)",
    )
    arguments = parser.parse(argv)
    with open_archive(arguments.file) as opened:
        return verify_opened(opened, arguments)
