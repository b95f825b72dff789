"""The table that every sweep ends in.

It shows the overrides, scores over seeds and replicates, state and record of each row.

    runner sweep outputs/multirun/2026-11-24_13-40-00      # shows it again

Runs that differ only in the seed are one row.  ``sweep.csv`` and ``sweep.html`` are in
the sweep's folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.disk.atomic import write_text
from runner.errors import ConfigError, display_path
from runner.sweep.outcomes import JOBS_FOLDER, read_outcomes
from runner.sweep.rows import SweepRow, describe_states, read_rows, score_names, to_frame
from runner.sweep.search_link import BEST, read_best
from runner.terminal.arguments import Parser, add_json, existing_folder
from runner.terminal.printer import mean_and_se, out
from runner.terminal.tables import measure_words, print_json, print_table, print_uncut
from runner.terminal.templates import environment

if TYPE_CHECKING:
    from rich.table import Table

SHOWN = 5  # scores on the terminal
ROWS = 40  # rows on the terminal
SMOKE_NOTE = "smoke runs have few steps on small data: their scores do not rank the settings"
MAX_REASON_CHARACTERS = 300  # characters of why a job failed


def to_cell(values: list[float] | None) -> str:
    """Mean ± SE of the scores."""
    return mean_and_se(values) if values else "–"


def show(sweep: Path, best_is_shown: bool = False) -> int:
    """Writes and prints the table; how many jobs failed.  ``best_is_shown``: the sweeper has
    printed a table of its own."""
    from rich.text import Text

    outcomes = read_outcomes(sweep)
    if not outcomes:
        return 0
    rows = read_rows(outcomes)
    search = read_best(sweep)
    best = [] if search is None else mark_best(rows, search[1])
    _write(sweep, rows, best, search and search[0] / "report.html")
    counts = describe_states(outcomes, counted=True)
    out.print(Text.assemble("\n", ("sweep", "bold"), f": {counts}"))
    if not best_is_shown:
        _show_rows(rows, best)
        if search is not None:
            out.print(f"search   {display_path(search[0])}/{BEST}, report.html")
    if any(row.is_smoke for row in rows):
        out.print(f"smoke    {SMOKE_NOTE}", style="yellow")
    failed = [job for job in outcomes if job.state == "failed"]
    shown_keys = {*rows[0].overrides, "seed"}
    for job in failed:
        settings = " ".join(f"{k}={v}" for k, v in job.values().items() if k in shown_keys)
        reason = job.message[:MAX_REASON_CHARACTERS]
        out.print(f"failed   job {job.number} ({settings}): {reason}", style="red")
    if (logs := sweep / ".submitit").is_dir():
        out.print(f"logs     of each job: {display_path(logs)}")
    csv = display_path(sweep / "sweep.csv")
    out.print(f"written  {csv}, sweep.html; runner sweep {display_path(sweep)}")
    return len(failed)


def _show_rows(rows: list[SweepRow], best: list[SweepRow]) -> None:
    """Show the first rows, and as many scores as fit, and say how many more there are."""
    names = score_names(rows)
    shown = min(SHOWN, len(names))
    if out.is_terminal:
        while shown > 1 and measure_words(_draw(rows, names[:shown], best)) > out.width:
            shown -= 1
        print_uncut(_draw(rows, names[:shown], best))
    else:
        print_table("", (), _lay_out(rows, names[:shown], best))
    hidden = []
    if len(rows) > ROWS:
        hidden.append(f"{len(rows) - ROWS} more rows")
    if more := names[shown:]:
        dots = ", …" if len(more) > SHOWN else ""
        hidden.append(f"{len(more)} more scores ({', '.join(more[:SHOWN])}{dots})")
    if hidden:
        out.print(f"{' and '.join(hidden)} in sweep.csv")


def _lay_out(rows: list[SweepRow], names: list[str], best: list[SweepRow]) -> list[list[str]]:
    """Header and lines: settings, seeds, scores, state and the first records of each row."""
    lines = [[*(rows[0].overrides or ["settings"]), "seeds", *names, "state", "record"]]
    for row in rows[:ROWS]:
        records = row.record_names
        more = f" and {len(records) - 2} more" if len(records) > 2 else ""
        scores = row.scores
        lines.append([
            *(row.overrides.values() or ["all alike"]),
            row.seeds or "–",
            *(to_cell(scores.get(name)) for name in names),
            f"★ {row.marked_state}" if row in best else row.marked_state,
            ", ".join(records[:2]) + more,
        ])  # fmt: skip
    return lines


def _draw(rows: list[SweepRow], names: list[str], best: list[SweepRow]) -> Table:
    from rich.table import Table

    table = Table()
    header, *lines = _lay_out(rows, names, best)
    n_settings = len(header) - len(names) - 3
    for i, name in enumerate(header):
        is_number = n_settings <= i < len(header) - 2
        table.add_column(name, justify="right" if is_number else "left")
    for line in lines:
        table.add_row(*line)
    return table


def mark_best(rows: Sequence[SweepRow], facts: Mapping[str, Any]) -> list[SweepRow]:
    """The rows of the best trials of ``best.yaml``."""
    best = [set(trial["overrides"]) for trial in facts["best"]]
    return [
        row
        for row in rows
        if any(params <= set(job.overrides) for params in best for job in row.jobs)
    ]


def _write(sweep: Path, rows: list[SweepRow], best: list[SweepRow], report: Path | None) -> None:
    """``sweep.csv`` with all scores, and ``sweep.html`` to be read; ``report``: of a search."""
    from runner.terminal.csv_cells import escape_table

    write_text(sweep / "sweep.csv", escape_table(to_frame(rows, best)).to_csv(index=False))
    html = (
        environment(Path(__file__).parent)
        .get_template("table.html.j2")
        .render(
            name=sweep.name,
            rows=rows,
            names=score_names(rows),
            cell=to_cell,
            best=best,
            report=report and os.path.relpath(report, sweep),
            smoke_note=SMOKE_NOTE if any(row.is_smoke for row in rows) else "",
        )
    )
    write_text(sweep / "sweep.html", html)


def main(argv: list[str]) -> int:
    """``runner sweep <folder>``."""
    parser = Parser(prog="runner sweep", description="The table of a sweep, again.")
    parser.add_argument(
        "folder",
        type=existing_folder,
        help="where the sweep wrote it, as outputs/multirun/2026-11-24_13-40-00",
    )
    add_json(parser)
    arguments = parser.parse_args(argv[1:])
    sweep = arguments.folder
    if not (sweep / JOBS_FOLDER).is_dir():
        sweeps = sorted(path.parent.name for path in sweep.glob(f"*/{JOBS_FOLDER}"))
        near = f"; of this folder are: {', '.join(sweeps[-5:])}" if sweeps else ""
        raise ConfigError(f"{sweep}: no folder of a sweep, it has no {JOBS_FOLDER}/{near}")
    if arguments.json:
        lines = to_frame(read_rows(read_outcomes(sweep.resolve())), []).to_dict("records")
        print_json({str(name): value for name, value in line.items()} for line in lines)
        return 0
    show(sweep.resolve())
    return 0
