"""Check that the runs of a study can give the scores that its tables and figures show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from components.metrics.names import PREFIXES, base_name, score_names
from runner.errors import ConfigError, nearest
from runner.study.snapshot import FrozenRun, Snapshot
from runner.study.table_specs import DISTANCES, Row

TIMING_METRICS = frozenset(
    {"milliseconds_per_step"}
)  # keys that reports read from the record of any run
ESS_RATE = "ess_per_second"  # keys that they read of runs with an ess


def refuse_unknown_scores(snapshot: Snapshot) -> None:
    """Refuse a study if a table or a figure names a score that no run can give.

    Runs with plug-ins may give scores of their own.

    Raises:
        ConfigError: naming the table or figure, and the nearest existing score.
    """
    scores = {run.row: frozenset[str]() for run in snapshot.runs}
    for run in snapshot.runs:
        if run.config.get("plugins"):
            return
        scores[run.row] |= frozenset() if run.refused else _scores_of(run)
    study = snapshot.study
    shown: list[tuple[str, Iterable[str], list[Row]]] = []  # name, metrics, and rows that have them
    for table in study.tables:
        rows = [row for row in study.rows if table.rows is None or row.name in table.rows]
        shown.append((f"table {table.name}", table.metrics, rows))
    for figure in [*study.figures, *study.evolutions, *study.spreads]:
        shown.append((f"figure {figure.name}", figure.metrics, study.rows_of_figure(figure)))
    for item, metrics, rows in shown:
        composed = [scores[row.name] for row in rows if scores.get(row.name)]
        names = frozenset().union(*composed)
        for metric in metrics if composed else ():
            prefix = metric.partition("/")[0]
            is_prefixed = prefix in PREFIXES and prefix != metric
            if base_name(metric) not in names and not is_prefixed:
                raise ConfigError(
                    f"study {snapshot.name}: {item}: no run gives {metric}{nearest(metric, names)}"
                )


def _scores_of(run: FrozenRun) -> frozenset[str]:
    """Names of the scores that a run can have, and of scores that reports derive from them."""
    from runner.compose.build import build_component

    dataset: Any = build_component("dataset", run.config["dataset"], "dataset")
    names = score_names(
        dataset.poses(), run.config.get("attacker") is not None, dataset.target_kind()
    )
    return names | {"cost"} | TIMING_METRICS | DISTANCES | ({ESS_RATE} if "ess" in names else set())
