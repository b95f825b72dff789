"""Draws from many categorical distributions in parallel, compared with cumulative sums."""

import pytest
import torch
from support.runs.configured import double, generator, uniform

from components.maths.particles.backward_draws import distinct, inverse_cdf


@pytest.mark.parametrize("n", [1, 2, 7, 9, 50])
def test_inverse_cdf_is_the_first_running_sum_above_u(n):
    g = generator(n)
    p = uniform(g, 3, 4, n)
    p[:, :, n // 2 :: 3] = 0.0
    p[..., 0] += 1e-3
    p /= p.sum(2, keepdim=True)
    rows = torch.randint(4, (3, 500), generator=g)
    u = uniform(g, 3, 500)
    got = inverse_cdf(p, rows, u)
    for r in range(3):
        running = p[r].cumsum(1)[rows[r]]
        assert torch.equal(got[r], (running <= u[r].unsqueeze(1)).sum(1))
    assert (p.gather(1, rows.unsqueeze(2).expand(-1, -1, n)).gather(2, got.unsqueeze(2)) > 0).all()


def test_extreme_uniforms_never_choose_zero_probability():
    p = torch.tensor([[[0.0, 0.5, 0.0, 0.5, 0.0]]])
    u = double([[0.0, 0.4999999, 0.5, 1 - 2**-24]])
    assert inverse_cdf(p, torch.zeros(1, 4).long(), u).tolist() == [[1, 1, 3, 3]]


def test_distinct_numbers_and_their_places():
    chosen = torch.tensor([[3, 1, 3, 3], [0, 2, 4, 1]])
    different, place = distinct(chosen, 5)
    assert different.tolist() == [[1, 3, 1, 1], [0, 1, 2, 4]]
    assert torch.equal(different.gather(1, place), chosen)
