"""The square attack: one window at a time, only improvements, and the published schedule."""

import pytest
import torch
from support.runs.configured import generator
from support.small.small_victims import Softmax, images, perturb

from components.attackers.criteria import margins
from components.attackers.evasion.square import _count_halvings, _window


class Recording(Softmax):
    """Victim that records its queries."""

    def __init__(self, **keys):
        super().__init__(**keys)
        self.queries: list[torch.Tensor] = []

    def predict(self, x, g):
        assert not torch.is_grad_enabled()
        self.queries.append(x.clone())
        return super().predict(x, g)


@pytest.mark.parametrize("shape", [None, (4, 4), (2, 4, 2)])
@torch.no_grad()
def test_squares_keep_improving_windows(shape):
    model = Recording(inputs=16, seed=2)
    eps = 0.02
    x, y = images(model, 1, seed=5)
    model.queries.clear()
    x_adv = perturb("square", model, x, y, eps, shape=shape, seed=1, queries=40, p=0.5)
    queries = torch.cat(model.queries)
    assert len(queries) == 40, "no success at this size, so that the whole budget is used"
    assert torch.equal(queries[:1], x)
    on_border = ((queries[1:] - x).abs() - eps).abs() < 1e-12
    assert (on_border | (queries[1:] == 0) | (queries[1:] == 1)).all()
    values = margins(model.predict(queries, generator()), y.expand(40, 1))
    best = 1
    for query in range(2, 40):
        changed = ((queries[query] - queries[best]).abs() > 1e-12).reshape(shape or (1, 16))
        grid = changed.any(0) if changed.ndim == 3 else changed
        where = grid.nonzero()
        h, w = _window(0.5 * 0.5 ** _count_halvings(query - 1, 40), *grid.shape)
        if len(where):
            assert (where.amax(0) - where.amin(0) < torch.tensor([h, w])).all()
        if values[query] < values[best]:
            best = query
    assert torch.equal(x_adv[0], queries[best])
    if shape is None or len(shape) == 2:
        stripes = (queries[1] - x).reshape(shape or (1, 16))
        assert (stripes.sign() == stripes[:1].sign()).all()


def test_square_size_follows_published_schedule():
    steps = (0, 10, 11, 51, 201, 501, 1001, 2001, 4001, 6001, 8001)
    assert [_count_halvings(i, 10_000) for i in steps] == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [_count_halvings(i, 1000) for i in (1, 2, 5, 6)] == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("p", "height", "width", "window"),
    [(0.8, 28, 28, (25, 25)), (1e-4, 28, 28, (1, 1)), (1.0, 4, 9, (4, 6)), (0.25, 1, 16, (1, 4))],
)
def test_windows_have_published_size(p, height, width, window):
    assert _window(p, height, width) == window
