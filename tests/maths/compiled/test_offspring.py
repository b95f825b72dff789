import pytest
import torch
from support.runs.configured import F64, generator, uniform

from components.maths.compiled import loops
from components.maths.compiled.offspring import count_points_below
from components.maths.particles import resampling


def sparse_weights(r, n):
    """Weights that are mostly nearly zero; some, including the last, are exactly zero."""
    g = generator(n)
    w = uniform(g, r, n) ** 8 * (torch.rand(r, n, generator=g) < 0.7)
    w[:, 0] += 1e-3
    w[:, n - n // 10 :] = 0
    return w


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("u", [0.0, 1 - 2**-53])
def test_points_at_the_ends_are_counted(u, fast, monkeypatch):
    monkeypatch.setattr(loops, "is_on_cpu", lambda x: fast)
    w = sparse_weights(6, 1000)
    counts = resampling.systematic_counts(w, torch.full((6,), u, dtype=F64))
    assert (counts.sum(1) == 1000).all()
    assert (counts[w == 0] == 0).all()


@pytest.mark.parametrize("size", [1, 6])
def test_particles_are_repeated_in_any_memory_layout(size):
    g = generator(0)
    rows = torch.randn(5, 40, size, generator=g)
    columns = rows.transpose(1, 2).contiguous().transpose(1, 2)
    counts = resampling.offspring("systematic", sparse_weights(5, 40), g)
    expected = torch.stack([x.repeat_interleave(k, 0) for x, k in zip(rows, counts, strict=True)])
    assert torch.equal(resampling.resample_particles(rows, counts), expected)
    assert torch.equal(resampling.resample_particles(columns, counts), expected)
    assert resampling.resample_particles(columns, counts).stride() == columns.stride()


def test_places_equal_those_of_a_search():
    g = generator(0)
    points = uniform(g, 7, 41).sort(1).values
    edges = uniform(g, 7, 40).sort(1).values
    edges[:, 3] = edges[:, 4] = points[:, 5]  # a boundary at a point, twice
    edges = edges.sort(1).values
    edges[0] = 0.0
    edges[1] = 1.0
    assert torch.equal(count_points_below(points, edges), torch.searchsorted(points, edges))
