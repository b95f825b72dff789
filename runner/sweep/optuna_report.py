"""Figures of a sweep by Optuna, in one HTML file that works offline.

They show the history of the search, the importance of keys, interactions of values, and for several
objectives the Pareto front.

The importance of a key is defined by Hutter et al. (2014) and computed by Optuna: the share of the
variance between trials that a random forest attributes to the key by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.disk.atomic import write_text
from runner.sweep.trials import completed_trials, describe_savings, metrics, pareto_front, several
from runner.terminal.templates import environment

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from optuna import Study
    from optuna.trial import FrozenTrial

FEWEST = 4  # completed trials needed to report importance
KEYS = 4  # number of keys in the contour plot, most important first
HEIGHT = 440  # pixels


def importances(study: Study) -> dict[str, dict[str, float]]:
    """Importance of each key by objective, in descending order; empty for too few trials or equal
    values."""
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    trials = completed_trials(study)
    evaluator = FanovaImportanceEvaluator(seed=0)
    return {
        name: get_param_importances(study, evaluator=evaluator, target=_value(k))
        for k, name in enumerate(metrics(study))
        if len(trials) >= FEWEST and len({t.values[k] for t in trials}) > 1
    }


def _value(k: int) -> Callable[[FrozenTrial], float]:
    """Function that returns objective k of a trial."""
    return lambda trial: trial.values[k]


def _varied_keys(study: Study) -> list[str]:
    """Searched keys with more than one value in completed trials."""
    trials = completed_trials(study)
    keys = trials[0].params if trials else ()
    return [key for key in keys if len({str(t.params[key]) for t in trials}) > 1]


def figures(study: Study) -> Iterator[tuple[str, go.Figure]]:
    """Figures with titles, in reading order."""
    import optuna.visualization as show
    from optuna.importance import FanovaImportanceEvaluator

    names = metrics(study)
    keys = _varied_keys(study)
    shares = importances(study)
    if len(names) in (2, 3):
        yield "Pareto front", show.plot_pareto_front(study, target_names=names)
    for k, name in enumerate(names):
        # for one objective Optuna considers the direction; a custom target is only needed for
        # several.
        target = _value(k) if several(study) else None
        suffix = f": {name}" if several(study) else ""
        leading = [key for key in shares.get(name, keys) if key in keys][:KEYS]
        importance = {"evaluator": FanovaImportanceEvaluator(seed=0), "target": _value(k)}
        plots: list[tuple[str, Callable[..., go.Figure], dict[str, Any], bool]] = [
            ("History", show.plot_optimization_history, {}, True),
            ("Importance of the keys", show.plot_param_importances, importance, name in shares),
            ("Parallel coordinates", show.plot_parallel_coordinate, {"params": keys}, bool(keys)),
            ("Contour", show.plot_contour, {"params": leading}, len(keys) > 1),
        ]
        for title, plot, options, is_shown in plots:
            if is_shown:
                figure = plot(study, **{"target": target, "target_name": name} | options)
                yield f"{title}{suffix}", figure
    if any(t.intermediate_values for t in study.get_trials(deepcopy=False)):
        on_the_way = show.plot_intermediate_values(study)
        yield (
            "Intermediate evaluations",
            on_the_way.update_layout(yaxis_title=names[0], xaxis_title="step of all replicates"),
        )


def _to_html(study: Study) -> list[tuple[str, str]]:
    """Title and HTML of each figure; the first includes the library."""
    fragments: list[tuple[str, str]] = []
    for title, figure in figures(study):
        figure.update_layout(
            title=None, height=HEIGHT, template="plotly_white", margin={"t": 30, "r": 30}
        )
        html = figure.to_html(
            full_html=False,
            include_plotlyjs=not fragments,
            config={"displaylogo": False, "responsive": True},
        )
        fragments.append((title, html))
    return fragments


def write_report(study: Study, folder: Path) -> None:
    """Write ``report.html``."""
    from runner.terminal.printer import number

    ended = [t for t in study.get_trials(deepcopy=False) if t.state.name in ("PRUNED", "FAIL")]
    html = (
        environment(Path(__file__).parent)
        .get_template("optuna.html.j2")
        .render(
            name=study.study_name,
            metrics=metrics(study),
            goals=[to.name.lower() for to in study.directions],
            done=completed_trials(study),
            ended=ended,
            front=pareto_front(study),
            several=several(study),
            saved=describe_savings(study),
            number=number,
            figures=_to_html(study),
        )
    )
    write_text(folder / "report.html", html)
