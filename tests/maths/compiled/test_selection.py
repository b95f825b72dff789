import numpy as np
import pytest

from components.maths.compiled.selection import order_statistics

LAWS = {
    "normal": lambda g, shape: g.standard_normal(shape),
    "heavy tails": lambda g, shape: g.standard_cauchy(shape) ** 5,
    "few values": lambda g, shape: np.round(g.standard_normal(shape)),
    "one value": lambda g, shape: np.full(shape, -3.0),
    "far from the origin": lambda g, shape: 1e6 + g.standard_normal(shape),
    "two heaps": lambda g, shape: g.standard_normal(shape) + 1e4 * (g.random(shape) < 0.03),
    "infinite": lambda g, shape: (
        np.where(g.random(shape) < 0.2, np.inf, 1.0) * g.choice([-1.0, 1.0], shape)
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("law", LAWS)
def test_selection_equals_a_sort(law, dtype):
    g = np.random.default_rng(0)
    for n in (1, 2, 63, 500, 3001):
        with np.errstate(over="ignore"):
            x = LAWS[law](g, (4, n)).astype(dtype)
        ranks = sorted({0, n // 20, min(n // 20 + 1, n - 1), n // 2, n - 1})
        assert np.array_equal(order_statistics(x, ranks), np.sort(x, 1)[:, ranks]), n
