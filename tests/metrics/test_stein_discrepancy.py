"""The kernelised Stein discrepancy, compared with its definition by automatic differentiation and
used on samples."""

import pytest
import torch
from support.runs.configured import F64, double, draw_normal, generator, normal
from torch.testing import assert_close

from components.metrics.stein_discrepancy import ksd_squared, stein_kernel


def score(x):
    """∇log p of a non-Gaussian target: −x − sin x for each coordinate."""
    return -x - x.sin()


def literal(x, y):
    """⟨𝒯_p^x, 𝒯_p^y⟩ k(x, y) for two points, each derivative taken by autograd."""
    x = x.clone().requires_grad_()
    y = y.clone().requires_grad_()
    k = (1.0 + ((x - y) ** 2).sum()) ** -0.5
    (dx,) = torch.autograd.grad(k, x, create_graph=True)
    (dy,) = torch.autograd.grad(k, y, create_graph=True)
    mixed = sum(torch.autograd.grad(dx[j], y, retain_graph=True)[0][j] for j in range(len(x)))
    with torch.no_grad():
        return float(mixed + dx @ score(y) + dy @ score(x) + k * (score(x) @ score(y)))


@pytest.fixture
def x():
    return 3 * draw_normal(7, 3) + 5


@pytest.fixture
def matrix(x):
    return double([[literal(a, b) for b in x] for a in x])


def test_kernel_equals_its_definition(x, matrix):
    assert_close(stein_kernel(x, score(x), x, score(x)), matrix, rtol=1e-10, atol=1e-10)


def test_u_and_v_statistics_equal_their_sums(x, matrix, monkeypatch):
    monkeypatch.setattr("components.metrics.stein_discrepancy.ROWS", 3)  # several blocks
    n = len(x)
    assert float(ksd_squared(x, score(x))) == pytest.approx(float(matrix.sum()) / n**2, rel=1e-10)
    w = torch.arange(1.0, n + 1, dtype=F64) / (n * (n + 1) / 2)
    weighted = sum(w[i] * w[j] * matrix[i, j] for i in range(n) for j in range(n))
    assert float(ksd_squared(x, score(x), w)) == pytest.approx(float(weighted), rel=1e-10)


def test_kernel_keeps_precision_far_from_the_origin(x):
    far = x + 1e7
    assert_close(ksd_squared(far, -(x - 5)), ksd_squared(x, -(x - 5)), rtol=1e-6, atol=0)


def test_exact_draws_have_mean_zero_unlike_wrong_ones():
    """The U-statistic, a mean of the kernel over pairs of different draws."""

    def discrepancy(s, score):
        k = stein_kernel(s, score, s, score)
        return (k.sum() - k.diagonal().sum()) / (len(s) * (len(s) - 1))

    g = generator(1)
    many = normal(g, 60, 200, 2)  # 60 samples of N(0, I)
    exact = torch.stack([discrepancy(s, -s) for s in many])
    assert abs(float(exact.mean() / (exact.std() / 60**0.5))) < 4
    # half the variance
    narrow = torch.stack([discrepancy(0.7 * s, -0.7 * s) for s in many])
    shifted = torch.stack([discrepancy(s + 0.3, -(s + 0.3)) for s in many])
    for wrong in (narrow, shifted):
        assert float(wrong.mean() / (wrong.std() / 60**0.5)) > 10
    # the mutant: −∇log p
    wrong_sign = torch.stack([discrepancy(s, s) for s in many])
    assert float(wrong_sign.mean() / (wrong_sign.std() / 60**0.5)) > 10
