"""Input spaces (boxes and words): projection, measures and random perturbations."""

import itertools
import math

import pytest
import torch
from support.runs.configured import double, generator
from support.small.small_problems import classes
from support.small.small_spam import words

from components.attackers.input_space import BoxSpace, WordSpace, input_space, require_norm
from components.errors import ConfigMismatchError

CORNERS = double(list(itertools.product((0.0, 2.0), repeat=3)))


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_largest_box_size_is_corner_distance(norm):
    box = BoxSpace((0.0, 2.0), 3)
    apart = torch.stack([box.size(a.expand(8, -1), CORNERS, norm) for a in CORNERS])
    assert box.largest(norm) == pytest.approx(float(apart.max()))
    assert BoxSpace(None, 3).largest(norm) == math.inf


def test_problem_domain_selects_input_space():
    spam = words(n_words=5)
    pictures = classes(n_inputs=4)
    assert input_space(spam) == WordSpace(5)
    assert input_space(pictures) == BoxSpace((0.0, 1.0), 4)
    assert require_norm("l1") == "l1"
    with pytest.raises(TypeError, match="flip is not a norm"):
        require_norm("flip")


@pytest.mark.parametrize("direction", ["insertion", "flip"])
def test_random_changes_use_full_budget_in_spam_only(direction):
    problem = words(n=200, n_words=6, seed=5)
    space = input_space(problem)
    x = problem.test.x
    y = problem.test.y
    x_adv = space.perturb_at_random(x, y, 2.0, direction, generator(0))
    size = space.size(x, x_adv, direction)
    assert (size[y[:, 0] == 0] == 0).all()
    room = (x == 0).sum(1) if direction == "insertion" else torch.full_like(size, 6)
    assert torch.equal(size[y[:, 0] == 1], room.clamp_max(2)[y[:, 0] == 1])
    assert torch.equal(space.clip(x_adv), x_adv)
    if direction == "insertion":
        assert (x_adv >= x).all()


def test_training_sizes_in_wrong_units_are_refused():
    WordSpace(5).check_training_size(2.0, "flip", "spam")
    with pytest.raises(
        ConfigMismatchError,
        match=r"inference.train_eps: 1.5 .*; use an integer",
    ):
        WordSpace(5).check_training_size(1.5, "flip", "spam")
    BoxSpace((0.0, 1.0), 4).check_training_size(2.0, "l2", "digits")
    with pytest.raises(
        ConfigMismatchError,
        match=r"inference.train_eps: 2 .*\[0.0, 1.0\].*; give it in the units",
    ):
        BoxSpace((0.0, 1.0), 4).check_training_size(2.0, "linf", "digits")
