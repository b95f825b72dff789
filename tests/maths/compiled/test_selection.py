import numpy as np
import pytest
import torch
from support.runs.configured import generator

from components.maths.compiled.selection import order_statistics
from components.maths.particles.order_statistics import quantiles

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
def test_they_are_those_of_a_sort(law, dtype):
    g = np.random.default_rng(0)
    for n in (1, 2, 63, 500, 3001):
        with np.errstate(over="ignore"):
            x = LAWS[law](g, (4, n)).astype(dtype)
        ranks = sorted({0, n // 20, min(n // 20 + 1, n - 1), n // 2, n - 1})
        assert np.array_equal(order_statistics(x, ranks), np.sort(x, 1)[:, ranks]), n


def test_quantiles_are_those_of_torch():
    x = torch.randn(3, 1000, 2, generator=generator(0))
    probabilities = (0.05, 0.5, 0.95)
    for found, p in zip(quantiles(x, probabilities), probabilities, strict=True):
        assert torch.allclose(found, torch.quantile(x, p, dim=1))
