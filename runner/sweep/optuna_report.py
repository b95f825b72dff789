"""The figures of a sweep by Optuna, in one HTML file that needs no network.

They show how the best was found, which keys matter, which values go together, and for
several objectives the Pareto front.

The importance of keys is defined by Hutter et al. (2014), as Optuna computes it: the
share of the variance between trials that a forest of trees ascribes to each of them
separately.
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
KEYS = 4  # in the contour: those that matter most
HEIGHT = 440  # pixels


def importances(study: Study) -> dict[str, dict[str, float]]:
    """Share of each key by objective, the one that matters most first; none of too few trials, or
    where all are alike."""
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    trials = completed_trials(study)
    evaluator = FanovaImportanceEvaluator(seed=0)
    return {
        name: get_param_importances(study, evaluator=evaluator, target=_value(k))
        for k, name in enumerate(metrics(study))
        if len(trials) >= FEWEST and len({t.values[k] for t in trials}) > 1
    }


def _value(k: int) -> Callable[[FrozenTrial], float]:
    """The value of objective k of a trial."""
    return lambda trial: trial.values[k]


def _varied_keys(study: Study) -> list[str]:
    """The searched keys that have more than one value in completed trials."""
    trials = completed_trials(study)
    return (
        [key for key in trials[0].params if len({str(t.params[key]) for t in trials}) > 1]
        if trials
        else []
    )


def figures(study: Study) -> Iterator[tuple[str, go.Figure]]:
    """Figures with their titles, in the order of a reader's questions."""
    import optuna.visualization as show
    from optuna.importance import FanovaImportanceEvaluator

    names = metrics(study)
    keys = _varied_keys(study)
    shares = importances(study)
    if len(names) in (2, 3):
        yield "Pareto front", show.plot_pareto_front(study, target_names=names)
    for k, name in enumerate(names):
        # Optuna's own reading of one objective follows its direction; a custom target is only for
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
            "Evaluations on the way",
            on_the_way.update_layout(yaxis_title=names[0], xaxis_title="step of all replicates"),
        )


def _to_html(study: Study) -> list[tuple[str, str]]:
    """Title and HTML of each figure; the first brings the library with it."""
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
    """``report.html``."""
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
