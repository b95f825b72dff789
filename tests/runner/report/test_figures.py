"""Figures of a report: curves of its tables, evolutions of its records, spreads of its replicates."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.runs.small_study import NOISE, line, record, redefine

from runner.record.facts import read
from runner.record.scores import list_scores, read_scores
from runner.report.figures.draw import draw_figures
from runner.report.results import layout_table

WAY = {"name": "way", "title": "On the way", "cell": {"dataset.n_train": 1000}}


def draw_curve(study, tables, result, **figure):
    """Axes and picture of the single curve of a run without a grid key."""
    specs = [{"title": t["name"], "better": "higher"} | t for t in tables]
    keys = {"name": "curve", "metrics": ["accuracy"], "rows": ["iRF"]} | figure
    small = redefine(study, grid={}, tables=specs, figures=[keys])
    small = replace(small, runs=[replace(study.runs[-1], cell={})])
    record(small, "d", 1000, [0.0, 0.0], result=result)
    picture = draw_figures(small.study, small, layout_table(small.study, small))["curve"]
    (ax,) = picture.figure.axes
    return ax, picture


def test_table_with_numeric_columns_is_a_curve(study):
    columns = {"0": "accuracy", "0.1": "robust"}
    table = {
        "name": "attacked",
        "title": "Accuracy under attack (higher is better)",
        "columns": columns,
    }
    result = {"accuracy": [0.9, 0.8], "robust": [0.5, 0.4]}
    ax, picture = draw_curve(study, [table], result, x="attacked", label="size")
    assert ax.get_xscale() == "linear"
    assert_allclose(ax.containers[0][0].get_xydata(), [[0, 0.85], [0.1, 0.45]])
    assert picture.caption.startswith("Accuracy under attack, mean ± SE")


def test_curve_of_rows_without_scores_is_not_drawn(study):
    small = redefine(
        study,
        figures=[{"name": "curve", "x": "dataset.n_train", "metrics": ["nlpp"], "rows": ["iRF"]}],
    )
    record(small, "a", 1000, NOISE)
    assert draw_figures(small.study, small, layout_table(small.study, small)) == {}


def test_floor_is_dashed_and_shaded_up_to_the_curve(study):
    tables = [
        {"name": "attacked", "columns": {"0.1": "robust", "0.2": "robuster"}},
        {"name": "certified", "columns": {"0.1": "certain", "0.2": "certainly"}},
    ]
    values = {"robust": 0.8, "robuster": 0.6, "certain": 0.5, "certainly": 0.1}
    result = {name: [v, v] for name, v in values.items()}
    ax, picture = draw_curve(study, tables, result, x="attacked", floor="certified")
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert_allclose(dashed[0].get_ydata(), [0.5, 0.1])
    assert ax.get_ylim()[0] < 0.1
    assert picture.caption.startswith("Attacked; dashed line below the shading: certified")


def test_frontier_plots_one_score_against_another(study):
    """A point for each value of the grid, with the other score on a linear horizontal axis."""
    key = "dataset.n_train"
    tables = [
        {"name": name, "title": name, "better": "higher", "columns": key, "metric": name}
        for name in ("reward", "loss")
    ]
    figure = {"name": "frontier", "x": key, "against": "loss", "metrics": ["reward"]}
    small = redefine(study, tables=tables, figures=[figure])
    for n, reward, loss in ((100, 1.0, 0.5), (1000, 3.0, 0.7)):
        record(small, "d", n, [0.0], result={"reward": [reward], "loss": [loss]})
    picture = draw_figures(small.study, small, layout_table(small.study, small))["frontier"]
    (ax,) = picture.figure.axes
    assert ax.get_xscale() == "linear"
    assert_allclose(ax.containers[0][0].get_xydata(), [[0.5, 1], [0.7, 3]])
    assert picture.caption.startswith("Reward against training points N by n_train, mean ± SE")


def test_training_seconds_exclude_evaluations():
    phases = ("train", "train", "evaluation", "train", "final")
    times = (1.0, 3.0, 8.0, 9.5, 20.0)
    lines = [
        line(0, phase, r, (1 + r) * time, nlpp=0.0)
        for r in (0, 1)
        for phase, time in zip(phases, times, strict=True)
    ]
    seconds = [each.seconds for each in list_scores(lines)]
    assert seconds == [1.0, 3.0, 3.0, 4.5, 4.5, 2.0, 6.0, 6.0, 9.0, 9.0]


@pytest.mark.parametrize("at_once", [False, True])
def test_evolutions_are_read_from_the_records_of_one_cell(study, at_once):
    small = redefine(study, evolutions=[WAY | {"metrics": ["nlpp"]}])
    steps = ((1, "train"), (10, "evaluation"), (20, "final"))
    for n in (100, 1000):
        values = [[n + r + 1 / t for t, _ in steps] for r in range(2)]
        lines = [
            line(t, phase, nlpp=[values[0][i], values[1][i]])
            if at_once
            else line(t, phase, r, nlpp=values[r][i])
            for r in range(1 if at_once else 2)
            for i, (t, phase) in enumerate(steps)
        ]
        record(small, "c", n, [0.5, 0.6], lines, vectorised=at_once)
    picture = draw_figures(small.study, small, [])["way"]
    (ax,) = picture.figure.axes
    assert picture.caption == "On the way; 2 runs per row"
    expected = [[[10, 1000 + r + 0.1], [20, 1000 + r + 0.05]] for r in range(2)]
    assert_allclose([line.get_xydata() for line in ax.lines], expected)
    timed = redefine(small, evolutions=[WAY | {"metrics": ["nlpp"], "against": "seconds"}])
    (ax,) = draw_figures(timed.study, timed, [])["way"].figure.axes
    assert ax.get_xlabel() == "seconds of training"
    assert {x for line in ax.lines for x in line.get_xdata()} == {1.0}  # evaluations take no time


@pytest.fixture
def study_with_difference(study):
    """An evolution minus the evolution of a row without a record."""
    return redefine(study, evolutions=[WAY | {"metrics": ["nelbo"], "less": "sMDGP, tuned"}])


def test_evolution_requires_a_record_of_the_subtracted_row(study_with_difference):
    record(study_with_difference, "c", 1000, [0.5], [line(10, "evaluation", nelbo=1)])
    assert draw_figures(study_with_difference.study, study_with_difference, []) == {}


def test_evolution_can_subtract_a_row(study_with_difference):
    """Mean differences over replicates; the last evaluation counts once, early ones do not count."""
    steps = (
        (1, "train"),
        (10, "evaluation"),
        (20, "evaluation"),
        (30, "evaluation"),
        (30, "final"),
    )
    for experiment, shift in (("b", 0.0), ("c", 10.0)):
        lines = [
            line(t, phase, r, nelbo=t * r + shift * (r + 1)) for r in range(2) for t, phase in steps
        ]
        folder = record(study_with_difference, experiment, 1000, [0.5, 0.6], lines)
    picture = draw_figures(study_with_difference.study, study_with_difference, [])["way"]
    (drawn,) = picture.figure.axes[0].lines
    assert_allclose(drawn.get_xydata(), [[10, 15.0], [20, 15.0], [30, 15.0]])
    ending = "of the differences from sMDGP, tuned, paired by replicate"
    assert picture.caption.endswith(f"2 runs per row, mean {ending}")
    late = read_scores(read(folder), folder, "late/nelbo")
    assert late == pytest.approx({(0, 0): 10.0, (0, 1): 25.0 + 20.0})
    band = {"shows": "band", "rows": ["iGP"], "label": "episode", "words": {"nelbo": "loss"}}
    spec = study_with_difference.study.evolutions[0].model_dump() | band
    banded = redefine(study_with_difference, evolutions=[spec])
    picture = draw_figures(banded.study, banded, [])["way"]
    (ax,) = picture.figure.axes
    # common settings are named once
    assert picture.caption.startswith("On the way, tuned; 2 runs per row")
    assert picture.caption.endswith(f"mean and central 90 % {ending}")
    assert [text.get_text() for text in picture.figure.legends[0].texts] == ["iGP"]
    drawn = (ax.get_xlabel(), ax.get_ylabel(), len(ax.lines), len(ax.collections))
    assert drawn == ("episode", "loss", 1, 1)
    edges = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert_allclose([edges.min(), edges.max()], [10.5, 19.5])  # of 10 and 20


def test_spreads_show_every_replicate_and_the_chosen_beta(study):
    spec = {
        "name": "all",
        "title": "All scores",
        "metrics": ["nlpp"],
        "rows": ["sMDGP, tuned", "iGP"],
        "words": {"nlpp": "NLPP"},
    }
    methods = {
        "iGP, tuned": {"name": "f", "beta": 0.1},
        "iRF": {"name": "s", "filter": {"name": "f"}},
    }
    runs = [replace(run, config={"inference": methods.get(run.row, {})}) for run in study.runs]
    small = replace(redefine(study, spreads=[spec]), runs=runs)
    record(small, "b", 100, 0.5 + NOISE)
    record(small, "b", 1000, [*(0.3 + NOISE), np.nan])
    record(small, "c", 1000, 0.7 + NOISE)
    record(small, "d", 1000, result={"nlpp": [1.0] * 3, "beta_selected": [0.1] * 3}, replicates=3)
    tables = layout_table(small.study, small)
    picture = draw_figures(small.study, small, tables)["all"]
    counts = "6 or 7 runs per row; data: sarcos; 1 score omitted as not finite"
    assert picture.caption == f"All scores; {counts}"
    (ax,) = picture.figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("n_train", "NLPP")
    dashed = [list(line.get_xdata()) for line in ax.lines if line.get_linestyle() == "--"]
    assert dashed == [[4.5, 4.5]]  # iGP at 1000
    assert draw_figures(study.study, small, []) == {}
