"""Table of a sweep: overrides, scores over seeds and replicates, state and record of each row.

    runner sweep outputs/multirun/2026-11-24_13-40-00      # prints it again

Runs that differ only in the seed share a row.  ``sweep.csv`` and ``sweep.html`` are in the sweep's
folder.
"""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING

from components.errors import list_names
from runner.disk.atomic import write_text
from runner.errors import ConfigError, display_path
from runner.sweep.outcomes import JOBS_FOLDER, read_outcomes
from runner.sweep.rows import describe_states, sweep_frame
from runner.sweep.search_link import BEST, read_best
from runner.terminal import json_lines
from runner.terminal.arguments import Parser, existing_folder
from runner.terminal.csv_cells import escape_table
from runner.terminal.printer import format_estimate, out
from runner.terminal.tables import fit_columns, print_json, print_named, print_table
from runner.terminal.templates import environment

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 5  # largest number of scores on the terminal
ROWS = 40  # largest number of rows on the terminal
SMOKE_NOTE = "smoke runs use few steps and little data: do not compare settings by their scores"
MAX_REASON_CHARACTERS = 300  # length of the reason of a failure


def show(sweep: Path, best_is_shown: bool = False) -> int:
    """Write and print the table; return the number of failed jobs.

    ``best_is_shown`` is True if the sweeper has printed its own table."""
    from rich.text import Text

    outcomes = read_outcomes(sweep)
    if not outcomes:
        return 0
    search = read_best(sweep)
    table = sweep_frame(outcomes, search and search[1])
    _write(sweep, table, search and search[0] / "report.html")
    counts = describe_states(outcomes, counted=True)
    out.print(Text.assemble("\n", ("sweep", "bold"), f": {counts}"))
    if not best_is_shown:
        _show_rows(table)
        if search is not None:
            print_named("search", f"{display_path(search[0])}/{BEST}, report.html")
    if table["smoke"].any():
        out.print(f"smoke    {SMOKE_NOTE}", style="yellow")
    failed = [job for job in outcomes if job.state == "failed"]
    for job in failed:
        values = job.values().items()
        settings = " ".join(f"{k}={v}" for k, v in values if k in table or k == "seed")
        reason = job.message[:MAX_REASON_CHARACTERS]
        out.print(f"failed   job {job.number} ({settings}): {reason}", style="red")
    if (logs := sweep / ".submitit").is_dir():
        print_named("logs", f"of each job: {display_path(logs)}")
    csv = display_path(sweep / "sweep.csv")
    print_named("written", f"{csv}, sweep.html; runner sweep {display_path(sweep)}")
    return len(failed)


def _list_scores(table: pd.DataFrame) -> list[str]:
    return [name for name in map(str, table) if f"{name} SE" in table]


def _to_texts(table: pd.DataFrame, scores: list[str]) -> dict[str, list[str]]:
    """Columns of a frame as text: settings, seeds, mean ± SE of scores, state and the first records
    of each row."""
    keys = itertools.takewhile(lambda name: name != "seeds", map(str, table))
    texts = {key: table[key].tolist() for key in keys} or {"settings": ["all alike"] * len(table)}
    texts["seeds"] = [seeds or "–" for seeds in table["seeds"]]
    for name in scores:
        cells = zip(table[name], table[f"{name} SE"], strict=True)
        texts[name] = ["–" if math.isnan(mean) else format_estimate(mean, se) for mean, se in cells]
    best = table.get("best", [False] * len(table))
    marked = zip(best, table["state"], table["smoke"], strict=True)
    texts["state"] = [f"{'★ ' * star}{state}{', smoke' * smoke}" for star, state, smoke in marked]
    texts["record"] = [list_names(names.split(), 2) for names in table["records"]]
    return texts


def _show_rows(table: pd.DataFrame) -> None:
    """Print the first rows and the scores that fit, with the numbers of hidden ones; everything for
    ``--json``.
    """
    if json_lines.is_installed():
        print_json(table.to_dict("records"))
        return
    names = _list_scores(table)
    shown = min(SHOWN, len(names))
    texts = _to_texts(table[:ROWS], names[:shown])
    while shown > 1 and fit_columns(_to_rows(texts), out.width) is None:
        shown -= 1
        texts = _to_texts(table[:ROWS], names[:shown])
    header, *rows = _to_rows(texts)
    print_table("", header, rows, has_header_in_pipe=True)
    hidden = []
    if len(table) > ROWS:
        hidden.append(f"{len(table) - ROWS} more rows")
    if more := names[shown:]:
        dots = ", …" if len(more) > SHOWN else ""
        hidden.append(f"{len(more)} more scores ({', '.join(more[:SHOWN])}{dots})")
    if hidden:
        out.print(f"{' and '.join(hidden)} in sweep.csv")


def _to_rows(texts: dict[str, list[str]]) -> list[list[str]]:
    return [list(texts), *map(list, zip(*texts.values(), strict=True))]


def _write(sweep: Path, table: pd.DataFrame, report: Path | None) -> None:
    """Write ``sweep.csv`` with all scores and ``sweep.html``; ``report`` belongs to a search."""
    write_text(sweep / "sweep.csv", escape_table(table).to_csv(index=False))
    texts = _to_texts(table, _list_scores(table)) | {"record": table["records"].tolist()}
    html = (
        environment(Path(__file__).parent)
        .get_template("table.html.j2")
        .render(
            name=sweep.name,
            texts=texts,
            n_keys=list(texts).index("seeds"),
            rows=list(zip(*texts.values(), strict=True)),
            failures=table["failed because"].tolist(),
            best=list(table.get("best", [])),
            report=report and os.path.relpath(report, sweep),
            smoke_note=SMOKE_NOTE if table["smoke"].any() else "",
        )
    )
    write_text(sweep / "sweep.html", html)


def main(argv: list[str]) -> int:
    """Execute ``runner sweep <folder>``."""
    parser = Parser(description="Print the table of a sweep.")
    parser.add_argument(
        "folder",
        type=existing_folder,
        help="folder of the sweep, such as outputs/multirun/2026-11-24_13-40-00",
    )
    arguments = parser.parse(argv)
    sweep = arguments.folder
    if not (sweep / JOBS_FOLDER).is_dir():
        sweeps = sorted(path.parent.name for path in sweep.glob(f"*/{JOBS_FOLDER}"))
        near = f"; sweeps are: {', '.join(sweeps[-5:])}" if sweeps else ""
        raise ConfigError(f"{sweep}: not a sweep, because it has no folder {JOBS_FOLDER}/{near}")
    if arguments.json:
        print_json(sweep_frame(read_outcomes(sweep.resolve())).to_dict("records"))
        return 0
    show(sweep.resolve())
    return 0
