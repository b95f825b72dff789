"""The learning curve of a run: bound and scores against steps."""

import numpy as np

from components.figures.training_curve import training_curve


def lines(n, evaluations=0, name="elbo"):
    train = [
        (step, "train", {name: -1e6 if step == 1 else -100.0 / step}) for step in range(1, n + 1)
    ]
    scores = {"nlpp": 1.0, "rmse": 2.0, "nlpp/joint 1": 3.0}
    return [*train, *((10 * k, "evaluation", scores) for k in range(1, evaluations + 1))]


def test_bound_and_scores_have_a_panel_each():
    figure = training_curve(lines(100, evaluations=3))["training_curve"]
    assert [axis.get_ylabel() for axis in figure.axes] == [
        "ELBO",
        "nlpp",
        "rmse",
    ]
    (curve,) = figure.axes[0].get_lines()
    np.testing.assert_array_equal(curve.get_xdata(), np.arange(1, 101))
    assert -30 < figure.axes[0].get_ylim()[0] < -16  # value of step 6: -16.7
    np.testing.assert_array_equal(figure.axes[1].get_lines()[0].get_xdata(), [10, 20, 30])


def test_few_values_draw_no_curve():
    assert len(training_curve(lines(10, evaluations=1))["training_curve"].axes) == 1
    assert training_curve(lines(9)) == {}
    assert training_curve([(k, "train", {"acceptance": 0.5}) for k in range(50)]) == {}


def test_objective_is_labelled_and_replicates_are_lines():
    figure = training_curve(lines(20, name="objective"))["training_curve"]
    assert figure.axes[0].get_ylabel() == "objective"
    both = [(k, "train", {"elbo": [1.0 * k, 2.0 * k]}) for k in range(20)]
    assert len(training_curve(both)["training_curve"].axes[0].get_lines()) == 2
