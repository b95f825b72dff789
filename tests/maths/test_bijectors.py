"""Bijectors: constraints on x, inverses, and log |det ∂x/∂θ| by autograd."""

import pytest
import torch
from support.runs.configured import F64, double, draw_normal

from components.maths.bijectors import POSITIVE, Interval, LowerBounded, Ordered, Simplex

BIJECTORS = {
    "positive": POSITIVE,
    "above another": LowerBounded(double([0.3, -2.0, 5.0])),
    "interval": Interval(-1.0, 3.0),
    "below another": Interval(0.0, double([0.2, 0.9, 4.0])),
    "ordered": Ordered(),
    "positive ordered": Ordered(positive=True),
    "simplex": Simplex(),
}


@pytest.fixture(params=BIJECTORS, ids=str)
def bijector(request):
    return BIJECTORS[request.param]


@pytest.fixture
def theta():
    return 1.5 * draw_normal(20, 3)


def test_log_jacobian_equals_autograd(bijector, theta):
    _, log_jacobian = bijector.forward(theta)
    assert log_jacobian.shape == theta.shape[:-1]
    for row, expected in zip(theta, log_jacobian, strict=True):
        matrix = torch.autograd.functional.jacobian(lambda t: bijector.forward(t)[0][..., :3], row)
        assert float(torch.linalg.slogdet(matrix)[1]) == pytest.approx(float(expected), abs=1e-10)


def test_inverse_recovers_the_input(bijector, theta):
    x, _ = bijector.forward(theta)
    assert torch.allclose(bijector.inverse(x), theta, atol=1e-9)


def test_leading_dimensions_do_not_mix(bijector, theta):
    x, log_jacobian = bijector.forward(theta)
    folded, folded_jacobian = bijector.forward(theta.unflatten(0, (4, 5)))
    assert torch.equal(folded.flatten(0, 1), x)
    assert torch.equal(folded_jacobian.flatten(), log_jacobian)


def test_properties_hold_as_declared(theta):
    assert (POSITIVE.forward(theta)[0] > 0).all()
    assert ((Interval(-1.0, 3.0).forward(theta)[0] + 1) / 4 - 0.5).abs().max() < 0.5
    assert (Ordered().forward(theta)[0].diff(dim=-1) > 0).all()
    assert (Ordered().forward(theta)[0][:, 0] < 0).any()
    positive = Ordered(positive=True).forward(theta)[0]
    assert (positive[:, 0] > 0).all()
    assert (positive.diff(dim=-1) > 0).all()
    simplex = Simplex().forward(theta)[0]
    assert simplex.shape[-1] == 4
    assert (simplex > 0).all()
    assert torch.allclose(simplex.sum(-1), torch.ones(20, dtype=F64))
    assert torch.allclose(
        Simplex().forward(torch.zeros(1, 3, dtype=F64))[0], torch.full((1, 4), 0.25, dtype=F64)
    )


def test_stick_breaking_equals_torch(theta):
    peer = torch.distributions.StickBreakingTransform()
    x, log_jacobian = Simplex().forward(theta)
    assert torch.allclose(x, peer(theta))
    assert torch.allclose(log_jacobian, peer.log_abs_det_jacobian(theta, x))


def test_extremes_stay_finite_and_have_gradients():
    theta = torch.tensor([[-40.0, 0.0, 40.0]], dtype=F64, requires_grad=True)
    for bijector in (Interval(0.0, 1.0), Simplex()):
        x, log_jacobian = bijector.forward(theta)
        (slope,) = torch.autograd.grad(log_jacobian.sum(), theta)
        assert torch.isfinite(x).all()
        assert torch.isfinite(slope).all()
