"""Whether the runs of a study give the scores that its tables and figures name, from their configs, before the first run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from components.metrics.names import PREFIXES, base_name, score_names
from runner.compose.build import built
from runner.mistakes import ConfigError, nearest
from runner.study.definition import DISTANCES, Row, StudyDefinition
from runner.study.figure_specs import EvolutionSpec, FigureSpec, SpreadSpec
from runner.study.snapshot import FrozenRun, Snapshot

OF_TIMES = frozenset({"milliseconds_per_step"})  # what reports read from the record of any run
ESS_RATE = "ess_per_second"  # what they read of runs that have an ess


def refuse_unknown_scores(snapshot: Snapshot) -> None:
    """Refuses a study of which a table or a figure names a score that none of its runs can give.

    Runs with plug-ins may give scores of their own.

    Raises:
        ConfigError: naming the table or figure, and the nearest score that there is."""
    given = {run.row: frozenset[str]() for run in snapshot.runs}
    for run in snapshot.runs:
        if run.config.get("plugins"):
            return
        given[run.row] |= frozenset() if run.refused else _scores_of(run)
    study = snapshot.study
    for what, metrics, rows in _shown(study):
        composed = [given[row.name] for row in rows if given.get(row.name)]
        names = frozenset().union(*composed)
        for metric in metrics if composed else ():
            if base_name(metric) not in names and metric.partition("/")[0] not in PREFIXES - {metric}:
                raise ConfigError(f"study {snapshot.name}: {what}: no run gives {metric}{nearest(metric, names)}")


def _shown(study: StudyDefinition) -> Iterator[tuple[str, Iterable[str], list[Row]]]:
    """What a report shows: its name, the metrics, and the rows that have them."""
    for table in study.tables:
        yield (
            f"table {table.name}",
            table.metrics,
            [r for r in study.rows if table.rows is None or r.name in table.rows],
        )
    drawn: list[FigureSpec | EvolutionSpec | SpreadSpec] = [*study.figures, *study.evolutions, *study.spreads]
    for figure in drawn:
        yield f"figure {figure.name}", figure.metrics, study.drawn(figure)


def _scores_of(run: FrozenRun) -> frozenset[str]:
    """Names of the scores that a run can have, and of what reports make of them."""
    dataset: Any = built("dataset", run.config["dataset"], "dataset")
    names = score_names(dataset.kind, run.config.get("attacker") is not None, dataset.labelled())
    return names | OF_TIMES | DISTANCES | ({ESS_RATE} if "ess" in names else set())
