"""Scores against cost: counts of gradients, Pareto fronts, and the figures of a study."""

from numpy.testing import assert_allclose
from support.runs.small_study import NOISE, line, record, redefine

from runner.report.figures.costs import pareto_front
from runner.report.figures.draw import draw_figures
from runner.report.report import write
from runner.study.figure_specs import CostSpec


def test_front_contains_undominated_points():
    points = [(1.0, 5.0), (2.0, 3.0), (3.0, 4.0), (2.0, 3.5), (4.0, 1.0)]
    assert pareto_front(points, "lower") == [True, True, False, False, True]
    assert pareto_front(points, "higher") == [True, False, False, False, False]
    assert pareto_front(points, None) == [False] * 5


def evaluate(study, experiment, *scores, **counts):
    """A record with evaluations; ``counts`` has the costs of a step."""
    lines = []
    for i, score in enumerate(scores, start=1):
        costs = {f"cost/{kind}": 10 * i * n for kind, n in counts.items()}
        for r in range(6):
            values = {"nlpp": float(score + NOISE[r])} | costs
            lines.append(line(10 * i, "train", r, 10.0 * i, loss=1.0))
            lines.append(line(10 * i, "evaluation", r, 10.0 * i, **values))
    record(study, experiment, 1000, scores[-1] + NOISE, lines)


def with_costs(study, *against):
    return redefine(
        study, figures=[{"kind": "cost", "metric": "nlpp", "against": each} for each in against]
    )


def curves_of(picture):
    """Points of the curves over evaluations."""
    return [drawn.get_xydata().tolist() for drawn in picture.figure.axes[0].lines]


def test_study_plots_scores_against_cost_by_one_key(study):
    frozen = with_costs(study, "steps", "gradients")
    evaluate(study, "a", 3.0, 1.0, gradients=4)
    evaluate(study, "b", 2.0, 0.5)  # no count
    pictures = draw_figures(frozen.study, frozen, [])
    assert list(pictures) == ["cost_nlpp_steps", "cost_nlpp_gradients"]
    by_steps, by_gradients = pictures.values()
    assert "mean and central 90 % of 6 replicates" in by_steps.caption
    assert by_gradients.caption.endswith("gradient evaluations not counted for sMDGP, tuned")
    expected = [[[10, 3.0], [20, 1.0]], [[10, 2.0], [20, 0.5]]]
    assert_allclose(curves_of(by_steps), expected)
    faces = [bars[0].get_markerfacecolor() for bars in by_steps.figure.axes[1].containers]
    # the same number of steps, a worse score
    assert [face == "white" for face in faces] == [True, False]
    written, _ = write("small", frozen.study, frozen, study.output_dir / "out", forms=())
    assert "cost_nlpp_steps.png" in {path.name for path in written}


def test_every_cost_is_plotted_by_its_count(study):
    frozen = with_costs(study, "gradients", "forwards")
    for experiment in ("a", "b"):
        evaluate(study, experiment, 3.0, 1.0, gradients=7, forwards=1)
    by_gradients, by_forwards = draw_figures(frozen.study, frozen, []).values()
    for picture, step in ((by_gradients, 70), (by_forwards, 10)):
        expected = [[[step, 3.0], [2 * step, 1.0]]] * 2
        assert_allclose(curves_of(picture), expected)
    assert "no count" not in by_gradients.caption


def test_figure_is_named_by_its_score_and_cost():
    assert CostSpec(kind="cost", metric="nlpp/task 1").name == "cost_nlpp_task_1_seconds"
