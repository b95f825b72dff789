"""Two moons: positions, noise and classes of the points."""

from functools import partial

import pytest
import torch
from sklearn.datasets import make_moons
from support.runs.configured import load_problem
from torch.testing import assert_close

load = partial(load_problem, "two_moons")


def test_points_without_noise_lie_on_half_circles():
    batch = load(noise=0.0, n_train=400).train
    y = batch.y[:, 0]
    upper = batch.x[y == 0]
    lower = batch.x[y == 1]
    assert_close(upper.norm(dim=1), torch.ones(len(upper), dtype=upper.dtype))
    assert (upper[:, 1] >= 0).all()
    centre = torch.tensor([1.0, 0.5], dtype=lower.dtype)
    assert_close((lower - centre).norm(dim=1), torch.ones(len(lower), dtype=lower.dtype))
    assert (lower[:, 1] <= 0.5).all()
    # the same curves: none of their points is further than a gap from ours
    x, label = make_moons(400, noise=None)
    for c, ours in ((0, upper), (1, lower)):
        theirs = torch.from_numpy(x[label == c])
        assert torch.cdist(theirs, ours).amin(1).max() < 0.15


def test_noise_has_the_requested_standard_deviation():
    n = 20_000
    s = 0.3
    clean, noisy = (load(noise=noise, n_train=n, n_test=1).train for noise in (0.0, s))
    assert torch.equal(clean.y, noisy.y)
    e = noisy.x - clean.x  # the same angles, since noise is drawn last
    assert e.std() == pytest.approx(s, rel=4 / (2 * 2 * n) ** 0.5)
    assert e.mean() == pytest.approx(0, abs=4 * s / (2 * n) ** 0.5)


def test_classes_are_balanced_and_test_points_shared():
    small = load(n_train=10)
    large = load(n_train=2000)
    other = load(seed=1)
    assert torch.equal(small.test.x, large.test.x)
    assert not torch.equal(small.test.x, other.test.x)
    assert large.train.y.double().mean() == pytest.approx(0.5, abs=4 * 0.5 / 2000**0.5)
    assert (large.bounds, large.domain, large.n_classes, large.target) == (
        None,
        "continuous",
        2,
        "binary",
    )
