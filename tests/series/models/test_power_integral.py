"""∫ g^a by quadrature compared with closed forms."""

import math

import pytest
import torch

from components.series.models.power_integral import log_power_integral

POWERS = [1.0, 1.0001, 1.05, 1.2, 1.8, 2.0]


def normal(z, sd=1.0):
    return -0.5 * (z / sd).square() - math.log(sd) - 0.5 * math.log(2 * math.pi)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize(
    ("sd", "breaks"), [(0.3, [0.0]), (1.0, [0.0]), (10.0, [0.0]), (1.0, [-1.5, 0.2, 3.0])]
)
def test_power_integral_of_a_normal_is_exact(power, sd, breaks):
    exact = 0.5 * (1 - power) * math.log(2 * math.pi * sd**2) - 0.5 * math.log(power)
    log_p = log_power_integral(lambda z: normal(z, sd), power, breaks, [sd, sd])
    assert log_p == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("nu", [1.0, 1.01, 4.0])
def test_power_integral_of_student_t_is_exact(power, nu):
    """∫ t^a = C^a √ν B(½, (a(ν + 1) − 1)/2), C = Γ((ν+1)/2)/(Γ(ν/2)√(νπ))."""
    log_c = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi)
    last = (power * (nu + 1) - 1) / 2
    beta = math.lgamma(0.5) + math.lgamma(last) - math.lgamma(0.5 + last)
    exact = power * log_c + 0.5 * math.log(nu) + beta

    def log_t(z):
        return log_c - (nu + 1) / 2 * torch.log1p(z.square() / nu)

    assert log_power_integral(log_t, power, [0.0], [1.0, 1.0]) == pytest.approx(exact, abs=1e-7)


@pytest.mark.parametrize("power", POWERS)
def test_power_integral_of_a_laplace_with_kink_is_exact(power):
    """∫ (exp(−|z|/b)/2b)^a = (2b)^{1−a}/a."""
    b = 2.5
    exact = (1 - power) * math.log(2 * b) - math.log(power)
    log_p = log_power_integral(lambda z: -z.abs() / b - math.log(2 * b), power, [0.0], [b, b])
    assert log_p == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("power", POWERS)
def test_power_integral_of_a_uniform_with_jumps_is_exact(power):
    def log_uniform(z):
        return torch.where(
            (z > -1) & (z < 3), z.new_tensor(-math.log(4.0)), z.new_tensor(-math.inf)
        )

    log_p = log_power_integral(log_uniform, power, [-1.0, 3.0], [1.0, 1.0])
    assert log_p == pytest.approx((1 - power) * math.log(4.0), abs=1e-12)


@pytest.mark.parametrize(
    ("power", "breaks", "scales"),
    [(0.0, [0.0], [1, 1]), (1.0, [1.0, 0.0], [1, 1]), (1.0, [], [1, 1]), (1.0, [0.0], [1, 0])],
)
def test_divergent_integrals_are_refused(power, breaks, scales):
    with pytest.raises(ValueError, match="must increase"):
        log_power_integral(normal, power, breaks, scales)
