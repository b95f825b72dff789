"""The table that every sweep ends in.

It shows the overrides, scores over seeds and replicates, state and record of each row.

    runner sweep outputs/multirun/2026-11-24_13-40-00      # shows it again

Runs that differ only in the seed are one row.  ``sweep.csv`` and ``sweep.html`` are in
the sweep's folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner.disk.atomic import write_text
from runner.errors import ConfigError, display_path
from runner.record.facts import read_facts_or_warn
from runner.statistics.standard_error import mean_se
from runner.sweep.outcomes import JOBS_FOLDER, JobOutcome, read_outcomes
from runner.terminal.arguments import Parser, add_json, existing_folder
from runner.terminal.plain import plain_value
from runner.terminal.printer import mean_and_se, out
from runner.terminal.tables import measure_words, print_json, print_table, print_uncut

if TYPE_CHECKING:
    import pandas as pd
    from optuna import Study

SHOWN = 5  # scores on the terminal
ROWS = 40  # rows on the terminal
SMOKE_NOTE = "smoke runs have few steps on small data: their scores do not rank the settings"
MAX_REASON_CHARACTERS = 300  # characters of why a job failed
# columns that do not distinguish rows
OWN = ("seed", "output_dir", "data_dir", "tracking", "offline", "hydra.sweep.dir")


@dataclass(frozen=True)
class SweepRow:
    """Jobs that differ only in the seed."""

    overrides: dict[str, str]  # keys that differ between rows
    jobs: list[JobOutcome]
    scores: dict[str, list[float]]  # over all seeds and replicates that are done

    @property
    def seeds(self) -> str:
        return ", ".join(dict.fromkeys(job.values().get("seed", "") for job in self.jobs)).strip(
            ", "
        )

    @property
    def state(self) -> str:
        counts = Counter(job.state for job in self.jobs)
        return (
            next(iter(counts))
            if len(counts) == 1
            else ", ".join(f"{n} {state}" for state, n in counts.items())
        )

    @property
    def is_smoke(self) -> bool:
        """True if a record of the row is of a smoke run."""
        return any((read_facts_or_warn(folder) or {}).get("smoke") for folder in self.records)

    @property
    def marked_state(self) -> str:
        """The state, with a mark on smoke runs."""
        return f"{self.state}, smoke" if self.is_smoke else self.state

    @property
    def records(self) -> list[Path]:
        return list(dict.fromkeys(job.folder for job in self.jobs if job.folder is not None))


def rows(outcomes: Iterable[JobOutcome]) -> list[SweepRow]:
    """One row for each setting, in the order of the first job that had it."""
    settings: dict[tuple[tuple[str, str], ...], list[JobOutcome]] = {}
    for outcome in outcomes:
        overrides = {
            key: value
            for key, value in outcome.values().items()
            if key not in OWN and not key.startswith("hydra")
        }
        settings.setdefault(tuple(sorted(overrides.items())), []).append(outcome)
    keys = dict.fromkeys(key for outcomes in settings.values() for key in outcomes[0].values())
    differ = [
        key
        for key in keys
        if key not in OWN and len({dict(setting).get(key) for setting in settings}) > 1
    ]
    return [
        SweepRow({key: dict(setting).get(key, "") for key in differ}, jobs, _scores(jobs))
        for setting, jobs in settings.items()
    ]


def _scores(jobs: list[JobOutcome]) -> dict[str, list[float]]:
    scores: dict[str, list[float]] = {}
    for folder in dict.fromkeys(
        job.folder for job in jobs if job.state == "done" and job.folder is not None
    ):
        for name, values in ((read_facts_or_warn(folder) or {}).get("result") or {}).items():
            if "/" not in name:
                scores.setdefault(name, []).extend(values)
    return scores


def frame(found: list[SweepRow], best: Sequence[SweepRow] = ()) -> pd.DataFrame:
    """All scores of all rows: mean, SE and number of values of each."""
    import pandas as pd

    names = dict.fromkeys(name for row in found for name in row.scores)
    lines = []
    for row in found:
        line: dict[str, object] = {**row.overrides, "seeds": row.seeds}
        for name in names:
            values = row.scores.get(name)
            line[name], line[f"{name} SE"] = mean_se(values) if values else (None, None)
        line["n"] = max((len(values) for values in row.scores.values()), default=0)
        line["state"] = row.state
        line["smoke"] = row.is_smoke
        if best:
            line["best"] = row in best
        line["records"] = " ".join(f"{folder.parent.name}/{folder.name}" for folder in row.records)
        line["failed because"] = "; ".join(
            dict.fromkeys(job.message for job in row.jobs if job.state == "failed")
        )
        lines.append(line)
    return pd.DataFrame(lines)


def cell(values: list[float] | None) -> str:
    """Mean ± SE of the scores."""
    return mean_and_se(values) if values else "–"


def show(sweep: Path, best_is_shown: bool = False) -> int:
    """Writes and prints the table; how many jobs failed.  ``best_is_shown``: the sweeper has
    printed a table of its own."""
    from rich.text import Text

    outcomes = read_outcomes(sweep)
    if not outcomes:
        return 0
    sweep_rows = rows(outcomes)
    names = list(dict.fromkeys(name for row in sweep_rows for name in row.scores))
    study = _study(sweep, best_is_shown)
    best = [] if study is None else mark_best(sweep_rows, study)
    _write(sweep, sweep_rows, names, best, study)
    failed = [job for job in outcomes if job.state == "failed"]
    counts = Counter(job.state for job in outcomes)
    out.print(
        Text.assemble(
            "\n", ("sweep", "bold"), f": {', '.join(f'{n} {state}' for state, n in counts.items())}"
        )
    )
    if not best_is_shown:
        _show_rows(sweep_rows, names, best)
    _show_remarks(sweep_rows, failed)
    if (logs := sweep / ".submitit").is_dir():
        out.print(f"logs     of each job: {display_path(logs)}")
    out.print(
        f"written  {display_path(sweep / 'sweep.csv')}, sweep.html; runner sweep {display_path(sweep)}"
    )
    return len(failed)


def _show_remarks(sweep_rows: list[SweepRow], failed: list[JobOutcome]) -> None:
    """A line on smoke runs, if there are any, and one for each failed job."""
    if any(row.is_smoke for row in sweep_rows):
        out.print(f"smoke    {SMOKE_NOTE}", style="yellow")
    for job in failed:
        settings = " ".join(
            f"{k}={v}"
            for k, v in job.values().items()
            if k in sweep_rows[0].overrides or k == "seed"
        )
        out.print(
            f"failed   job {job.number} ({settings}): {job.message[:MAX_REASON_CHARACTERS]}",
            style="red",
        )


def _show_rows(sweep_rows: list[SweepRow], names: list[str], best: list[SweepRow]) -> None:
    """Show the first rows, and as many scores as fit, and say how many more there are."""
    from rich.table import Table

    varied = list(sweep_rows[0].overrides) or ["settings"]

    def lay_out(n_scores: int) -> list[list[str]]:
        header = [*varied, "seeds", *names[:n_scores], "state", "record"]
        rows = sweep_rows[:ROWS]
        return [header, *(_line(row, names[:n_scores], row in best) for row in rows)]

    def draw(n_scores: int) -> Table:
        table = Table()
        header, *lines = lay_out(n_scores)
        for i, name in enumerate(header):
            is_number = len(varied) <= i < len(header) - 2
            table.add_column(name, justify="right" if is_number else "left")
        for line in lines:
            table.add_row(*line)
        return table

    shown = min(SHOWN, len(names))
    if out.is_terminal:
        while shown > 1 and measure_words(draw(shown)) > out.width:
            shown -= 1
        print_uncut(draw(shown))
    else:
        print_table("", (), lay_out(shown))
    hidden = []
    if len(sweep_rows) > ROWS:
        hidden.append(f"{len(sweep_rows) - ROWS} more rows")
    if len(names) > shown:
        more = names[shown:]
        dots = ", …" if len(more) > SHOWN else ""
        hidden.append(f"{len(more)} more scores ({', '.join(more[:SHOWN])}{dots})")
    if hidden:
        out.print(f"{' and '.join(hidden)} in sweep.csv")


def _line(row: SweepRow, names: list[str], is_best: bool) -> list[str]:
    """Settings, seeds, scores, state and the first records of a row."""
    records = ", ".join(f"{folder.parent.name}/{folder.name}" for folder in row.records[:2])
    more = f" and {len(row.records) - 2} more" if len(row.records) > 2 else ""
    return [
        *(row.overrides.values() or ["all alike"]),
        row.seeds or "–",
        *(cell(row.scores.get(name)) for name in names),
        f"★ {row.marked_state}" if is_best else row.marked_state,
        records + more,
    ]


def _study(sweep: Path, is_shown: bool) -> Study | None:
    """The study of Optuna's that a sweep was, shown unless it is; None: it was none, or its trials
    are not there."""
    from runner.sweep import kept

    folder = kept.folder_of(sweep)
    if folder is None:
        return None
    study = kept.load(folder)
    if study is None:
        out.print(
            f"trials   were in {display_path(folder)}, and are there no longer", style="yellow"
        )
    elif not is_shown:
        from runner.sweep.best import show_best

        show_best(study, folder)
    return study


def mark_best(found: Sequence[SweepRow], study: Study) -> list[SweepRow]:
    """The rows of the best trials for one objective, or of the Pareto front."""
    from runner.sweep.search_space import params_to_overrides
    from runner.sweep.trials import completed_trials, pareto_front

    front = pareto_front(study)
    best = [
        set(params_to_overrides(t.params)) for t in completed_trials(study) if t.number in front
    ]
    return [
        row
        for row in found
        if any(params <= set(job.overrides) for params in best for job in row.jobs)
    ]


def _write(
    sweep: Path, found: list[SweepRow], names: list[str], best: list[SweepRow], study: Study | None
) -> None:
    """``sweep.csv`` with all scores, and ``sweep.html`` to be read, with Optuna's figures."""
    import jinja2

    from runner.terminal.csv_cells import escape_table

    write_text(sweep / "sweep.csv", escape_table(frame(found, best)).to_csv(index=False))
    figures: list[tuple[str, str]] = []
    if study is not None and best:
        from runner.sweep.optuna_report import fragment, importances

        figures = fragment(study, importances(study))
    templates = jinja2.Environment(
        loader=jinja2.PackageLoader("runner", "sweep"), autoescape=True, finalize=plain_value
    )
    html = templates.get_template("table.html.j2").render(
        name=sweep.name,
        rows=found,
        names=names,
        cell=cell,
        best=best,
        figures=figures,
        smoke_note=SMOKE_NOTE if any(row.is_smoke for row in found) else "",
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
        lines = frame(rows(read_outcomes(sweep.resolve()))).to_dict("records")
        print_json({str(name): value for name, value in line.items()} for line in lines)
        return 0
    show(sweep.resolve())
    return 0
