"""Drawing of all figures of a study."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runner.report.figures.costs import draw_cost
from runner.report.figures.curves import draw_curve
from runner.report.figures.evolutions import draw_evolution
from runner.report.figures.picture import FigureSource, Picture
from runner.report.figures.ranks import draw_ranks
from runner.report.figures.spreads import draw_spread
from runner.report.run_views import run_views
from runner.report.scores.cells import TableLayout
from runner.study.definition import StudyDefinition
from runner.study.figure_specs import CostSpec, EvolutionSpec, FigureSpec, RankSpec, SpreadSpec
from runner.study.snapshot import Snapshot

# drawing functions in the order of the page
DRAWERS: dict[type, Callable[[Any, FigureSource], Picture | None]] = {
    FigureSpec: draw_curve,
    EvolutionSpec: draw_evolution,
    SpreadSpec: draw_spread,
    RankSpec: draw_ranks,
    CostSpec: draw_cost,
}


def draw_figures(
    study: StudyDefinition, snapshot: Snapshot | None, tables: list[TableLayout]
) -> dict[str, Picture]:
    """Pictures of all figures with data, by file stem."""
    kinds = list(DRAWERS)
    runs = run_views(snapshot)
    pictures = {}
    for spec in sorted(study.all_figures, key=lambda figure: kinds.index(type(figure))):
        source = FigureSource(study, runs, tables, *study.row_labels(spec))
        picture = DRAWERS[type(spec)](spec, source)
        if picture is not None:
            pictures[spec.name] = picture
    return pictures
