"""The Laplace approximation: mode, curvature and derivatives."""

import torch
from support.runs.configured import double, generator
from support.targets.exact_targets import TwoModes
from support.targets.known_targets import F64, GammaTarget, GaussianTarget, correlated_gaussian
from torch.testing import assert_close

from components.inference.mcmc.laplace import derivatives, laplace, mode


def test_laplace_finds_mode_and_curvature():
    model = GammaTarget()  # in θ = log x: mode log(a/b), curvature a
    centre, L = laplace(model, double([[3.0], [-5.0]]), None)
    assert_close(centre, double([1.5]).log())
    assert_close(L @ L.T, double([[1 / 3]]))
    gaussian = correlated_gaussian()
    centre, L = laplace(gaussian, gaussian.sample_prior(2, generator(0)), None)
    assert_close(centre, gaussian.mean)
    assert_close(L @ L.T, gaussian.covariance)


def test_laplace_does_not_depend_on_units():
    scale = double([1e-6, 1e7])
    covariance = scale[:, None] * correlated_gaussian(0.99).covariance * scale
    target = GaussianTarget(scale * 3, covariance)
    centre, L = laplace(target, torch.zeros(1, 2, dtype=F64), None)
    assert_close(centre / scale, torch.full((2,), 3.0, dtype=F64))
    assert_close(L @ L.T / covariance, torch.ones(2, 2, dtype=F64))


def test_laplace_selects_higher_mode():
    starts = double([[-2.0], [2.5]])
    ends = [mode(TwoModes(), start, None) for start in starts]
    centre, _ = laplace(TwoModes(), starts, None)
    assert ends[0][0] < 0 < ends[1][0]
    best = max(ends, key=lambda end: float(end[1]))
    assert torch.equal(centre, best[0])


def test_derivatives_match_autograd():
    class Curved(TwoModes):
        def log_prior(self, theta):
            x, y = theta.unbind(1)
            return -(x**2) - (y - x**2) ** 2 + x.sin() * y

    theta = double([0.3, -0.7])
    value, gradient, hessian = derivatives(Curved(), theta, None)

    def f(t):
        return Curved().log_prior(t[None])[0]

    assert_close(value, f(theta))
    assert_close(gradient, torch.autograd.functional.jacobian(f, theta))
    assert_close(hessian, torch.autograd.functional.hessian(f, theta))
