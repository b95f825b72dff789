"""Slice sampling against the exact law: chains that begin there stay there."""

from __future__ import annotations

import torch
from scipy import stats

from components.series.conditionals.slice_sampling import slice_sample


def test_it_leaves_a_density_as_it_is_and_forgets_where_it_began():
    """Beta(2, 5): from exact draws, and from one end."""
    n, g = 4000, torch.Generator().manual_seed(0)
    log_density = lambda x: x.log() + 4 * (1 - x).log()  # noqa: E731
    exact = torch.as_tensor(stats.beta(2, 5).rvs(n, random_state=0))
    one = slice_sample(log_density, exact, 0.0, 1.0, g)
    assert stats.kstest(one.numpy(), stats.beta(2, 5).cdf).pvalue > 1e-3
    assert abs(float(torch.corrcoef(torch.stack([exact, one]))[0, 1])) < 0.5
    far = torch.full((n,), 0.999, dtype=torch.float64)
    for _ in range(8):
        far = slice_sample(log_density, far, 0.0, 1.0, g)
    assert stats.kstest(far.numpy(), stats.beta(2, 5).cdf).pvalue > 1e-3
    assert not torch.equal(far, one)
