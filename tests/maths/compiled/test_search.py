from __future__ import annotations

import pytest
import torch

from components.maths.compiled import loops
from components.maths.compiled.search import count_points_below


@pytest.mark.skipif(not loops.available(), reason="numba is not installed")
def test_places_are_those_of_a_search():
    g = torch.Generator().manual_seed(0)
    points = torch.rand(7, 41, generator=g, dtype=torch.float64).sort(1).values
    edges = torch.rand(7, 40, generator=g, dtype=torch.float64).sort(1).values
    edges[:, 3] = edges[:, 4] = points[:, 5]  # an edge on a point, twice
    edges = edges.sort(1).values
    edges[0] = 0.0
    edges[1] = 1.0
    assert torch.equal(count_points_below(points, edges), torch.searchsorted(points, edges))
