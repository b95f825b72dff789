"""Protocols of the cells of a study that was not launched here, from its definition."""

from __future__ import annotations

from collections.abc import Iterable

from runner.catalogue.settings import Values
from runner.errors import ConfigError
from runner.report.scores.cells import CellKey, ExpectedProtocols
from runner.report.scores.gathering import belongs, metric_of
from runner.study.definition import StudyDefinition
from runner.study.plan import PlannedRun, plan
from runner.study.protocol import find_protocol


def expect_protocols(study: StudyDefinition, places: Iterable[CellKey]) -> ExpectedProtocols:
    """Protocol of each (table, row, column) as the study defines it.

    A cell is left out if its run cannot be composed here, or imports code of a user.
    """
    tables = {table.name: table for table in study.tables}
    rows = {row.name: row for row in study.rows}
    planned = plan(study, [])
    configs: dict[str, Values | None] = {}  # by name of the run
    expected: ExpectedProtocols = {}
    for place in places:
        table = tables[place[0]]
        row = rows[place[1]]
        column = place[2]
        run = next((run for run in planned if belongs(run, table, row.name, column)), None)
        if run is None:
            continue
        if run.name not in configs:
            configs[run.name] = _compose(run, study.name)
        config = configs[run.name]
        if config is not None:
            expected[place] = find_protocol(config, metric_of(table, row, column))
    return expected


def _compose(run: PlannedRun, study: str) -> Values | None:
    """Resolved config of a run; None if it cannot be composed without a user's code."""
    from runner.compose.compose import compose
    from runner.compose.resolve import resolve

    try:
        composed = compose(list(run.overrides))
        if composed.cfg.get("plugins"):
            return None
        return resolve(composed._replace(experiment=composed.experiment or study)).config
    except ConfigError:
        return None
