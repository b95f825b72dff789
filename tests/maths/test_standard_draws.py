"""Standard draws equal torch's draws for every shape, including scalars."""

import pytest
import torch
from support.runs.configured import generator

from components.maths.exponential.standard_draws import standard_normal, standard_uniform


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), torch.Size([4])])
@pytest.mark.parametrize(
    ("draw", "of_torch"), [(standard_normal, torch.randn), (standard_uniform, torch.rand)]
)
def test_numbers_equal_torch(draw, of_torch, shape):
    like = torch.zeros((), dtype=torch.float32)
    drawn = draw(shape, generator(3), like)
    expected = of_torch(tuple(shape), generator=generator(3))
    assert drawn.dtype == like.dtype
    assert torch.equal(drawn, expected)
