import math

import pytest
import torch
from support.runs.configured import double, draw_normal, draw_uniform
from torch.testing import assert_close

from components.inference.alpha.power_mean import log_power_mean


@pytest.mark.parametrize("power", [-1.5, 1e-4, 0.25, 1.0, 3.0])
def test_power_mean_matches_literal_sum(power):
    ell = draw_normal(7, 4)
    literal = [
        math.log(sum(math.exp(power * float(v)) for v in column) / 7) / power for column in ell.T
    ]
    assert_close(log_power_mean(ell, power), double(literal))
    point = ell.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(log_power_mean(point, power).sum(), point)
    assert_close(gradient, (power * ell).softmax(0))


def test_small_powers_are_accurate_in_single_precision():
    ell = -300 * draw_uniform(10, 50, seed=1)
    exact = log_power_mean(ell.float().double(), 1e-4)
    mean = log_power_mean(ell.float(), 1e-4)
    assert ((mean.double() - exact) / exact).abs().max() < 1e-5
    naive = (ell.float() * 1e-4).logsumexp(0).sub(math.log(10)) / 1e-4
    assert ((naive.double() - exact) / exact).abs().max() > 1e-5  # the reason for the stable form


def test_limits_are_mean_and_extremes():
    ell = draw_normal(5, 3, seed=2)
    assert_close(log_power_mean(ell, 0.0), ell.mean(0))
    assert_close(log_power_mean(ell, 1e-7), ell.mean(0), atol=1e-6, rtol=0)
    assert_close(log_power_mean(ell, 1e4), ell.amax(0), atol=1e-3, rtol=0)
    assert_close(log_power_mean(ell, -1e4), ell.amin(0), atol=1e-3, rtol=0)
    huge = double([[-1e5], [-2e5]])
    assert_close(log_power_mean(huge, 1.0), double([-1e5 - math.log(2)]))
