"""Figures of attacked classifiers: examples that the attack breaks, and the curve."""

import pandas as pd
import pytest
import torch

from components.figures.attacked.attacked_examples import attacked_examples_figure, choose_examples
from components.figures.attacked.security_curve import security_curve_figure

Y = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7])
CLEAN = torch.tensor([0, 9, 2, 3, 4, 5, 6, 7])  # row 1 is misclassified before the attack


@pytest.mark.parametrize(
    ("after", "chosen"),
    [
        # half of each kind; rows that were correct before come first
        ([0, 8, 2, 3, 9, 5, 9, 9], [4, 6, 0, 2]),
        ([0, 8, 2, 3, 4, 5, 6, 7], [1, 0, 2, 3]),  # one is broken
        ([9, 8, 9, 9, 9, 9, 9, 7], [0, 2, 3, 7]),  # one is not
        (CLEAN.tolist(), [0, 1, 2, 3]),
    ],
)
def test_half_of_examples_change_class(after, chosen):
    assert choose_examples(CLEAN, torch.tensor(after), Y, 4).tolist() == chosen


def test_example_shows_true_and_predicted_class():
    x = torch.rand(2, 4)
    figure = attacked_examples_figure(
        x=x,
        attacked=x + 0.1,
        before=torch.tensor([0, 1]),
        after=torch.tensor([1, 1]),
        y=torch.tensor([0, -1]),
        shape=(2, 2),
        title="fgsm",
        class_names=["cat", "dog"],
    )
    titles = [axis.get_title() for axis in figure.axes]
    assert titles[:6] == ["cat → cat", "? → dog", "", "", "cat → dog", "? → dog"]
    assert figure.axes[6].get_ylim() == pytest.approx((-0.1, 0.1))  # scale of the perturbation
    assert figure.get_suptitle().startswith("fgsm\n")


def test_curve_states_number_of_labels():
    columns = ["eps", "accuracy", "random_accuracy", "worst_case_accuracy"]
    rows = pd.DataFrame([[0.0, 1, 1, 1], [0.1, 0.2, 0.9, 0.2]], columns=columns)
    rows["log_likelihood"] = [-1.0, -2.0]
    rows["entropy"] = [0.1, 0.2]
    figure = security_curve_figure(rows, "fgsm", True, 1234)
    left_axes, right_axes = figure.axes
    assert "1,234 test labels" in left_axes.get_title()
    for axis in (left_axes, right_axes):
        lines = {line.get_label() for line in axis.lines}
        assert {text.get_text() for text in axis.get_legend().texts} == lines
