import math

import pytest
import torch
from support.runs.configured import F64, generator, normal

from components.maths.compiled import weighing

TYPES = [torch.float32, F64]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("spread", [0.1, 30.0, 600.0])
def test_weights_are_exponentials(dtype, spread):
    log_w = 50 - spread * torch.rand(7, 1001, generator=generator(0)).to(dtype)
    w, sums = weighing.weights(log_w)
    z = log_w.double() - log_w.double().amax(1, keepdim=True)
    assert torch.allclose(w, z.exp(), rtol=1e-13, atol=0)
    assert torch.allclose(sums[:, 0], z.exp().sum(1), rtol=1e-13, atol=0)
    assert torch.allclose(sums[:, 1], (2 * z).exp().sum(1), rtol=1e-13, atol=0)
    assert torch.allclose(sums[:, 2], log_w.double().logsumexp(1), rtol=1e-13, atol=1e-12)
    assert torch.allclose(
        sums[:, 3], 1 / log_w.double().softmax(1).square().sum(1), rtol=1e-12, atol=0
    )


def test_zero_weights_stay_zero_and_nan_stays_nan():
    log_w = torch.zeros(5, 20, dtype=F64)
    log_w[0, 3] = -math.inf
    log_w[1, 3] = -709.0
    log_w[2, 3] = math.nan
    log_w[3] = -math.inf
    log_w[4, 3] = math.inf
    w, sums = weighing.weights(log_w)
    log_sum = sums[:, 2]
    assert w[0, 3] == w[1, 3] == 0
    assert torch.allclose(log_sum[:2].exp(), torch.tensor(19.0).double())
    assert not log_sum[2:].isfinite().any()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [1, 4])
def test_moments_equal_those_of_weighted_particles(dtype, size):
    g = generator(1)
    x = (1e3 + 0.1 * normal(g, 3, 500, size)).to(dtype)
    w, sums = weighing.weights(normal(g, 3, 500))
    mean, variance = weighing.moments(x, w, sums)
    p = (w / w.sum(1, keepdim=True)).unsqueeze(2)
    exact = (p * x.double()).sum(1)
    assert mean.dtype == dtype
    assert torch.allclose(mean.double(), exact, rtol=1e-7 if dtype == torch.float32 else 1e-14)
    assert torch.allclose(
        variance.double(),
        (p * (x.double() - exact.unsqueeze(1)).square()).sum(1),
        rtol=1e-6,
        atol=0,
    )
