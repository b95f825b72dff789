from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from support.runs.configured import double, draw_normal, generator, normal
from support.targets.known_targets import Curved
from torch.testing import assert_close

from components.contracts.problems import Batch
from components.inference.hamiltonian.leapfrog import Phase, acceptance, energy_error, leapfrog
from components.inference.hamiltonian.mass import Mass
from components.inference.log_joint import log_joint, log_joint_gradient, value_and_gradient

COVARIANCES = {
    "diagonal": double([0.7, 1.8]),
    "dense": double([[0.7, 0.5], [0.5, 1.8]]),
}


def start(mass, n=6, seed=0):
    g = generator(seed)
    theta = normal(g, n, 2)
    return Phase(theta, mass.momentum(theta, g), *value_and_gradient(Curved(), theta, None))


@pytest.fixture(params=COVARIANCES)
def mass(request):
    return Mass.of(COVARIANCES[request.param])


def test_mass_is_inverse_covariance(mass):
    inverse = mass.inverse if mass.inverse.dim() == 2 else mass.inverse.diag()
    M = torch.linalg.inv(inverse)
    r = draw_normal(5, 2)
    assert_close(mass.velocity(r), torch.stack([inverse @ row for row in r]))
    assert_close(mass.kinetic(r), torch.stack([0.5 * row @ inverse @ row for row in r]))
    assert_close(mass.square(r), torch.stack([row @ M @ row for row in r]))
    assert_close(mass.move(r, 2 * r, 0.3), r + 0.6 * mass.velocity(r))
    assert mass.speed == pytest.approx(float((inverse.trace() / 2).sqrt()))
    many = mass.momentum(r.new_zeros(200_000, 2), generator(1))
    # entries below 2: MC error about 0.006
    assert_close(many.T.cov(), M, rtol=0, atol=0.02)


def test_leapfrog_matches_literal_updates(mass):
    z = start(mass)
    fast = leapfrog(Curved(), None, mass, 0.2, z, 7)
    theta = z.theta
    r = z.r
    for _ in range(7):
        r = r + 0.1 * value_and_gradient(Curved(), theta, None)[1]
        theta = theta + 0.2 * mass.velocity(r)
        r = r + 0.1 * value_and_gradient(Curved(), theta, None)[1]
    assert_close(fast.theta, theta)
    assert_close(fast.r, r)
    value, gradient = value_and_gradient(Curved(), theta, None)
    assert_close(fast.value, value)
    assert_close(fast.gradient, gradient)


def test_leapfrog_is_reversible(mass):
    z = start(mass)
    endpoint = leapfrog(Curved(), None, mass, 0.2, z, 9)
    back = leapfrog(Curved(), None, mass, 0.2, replace(endpoint, r=-endpoint.r), 9)
    assert_close(back.theta, z.theta, rtol=0, atol=1e-11)
    assert_close(-back.r, z.r, rtol=0, atol=1e-11)
    assert (endpoint.theta - z.theta).abs().max() > 0.5


def test_energy_and_acceptance_match_formulas():
    mass = Mass.of(COVARIANCES["dense"])
    z = start(Mass.of(COVARIANCES["dense"]))
    for c in range(6):
        literal = -Curved().log_prior(z.theta)[c] + 0.5 * z.r[c] @ mass.inverse @ z.r[c]
        assert_close(z.energy(mass)[c], literal)
    error = double([-2.0, 0.0, 0.5, 3000.0])
    assert_close(acceptance(error), double([1.0, 1.0, 0.6065306597, 0.0]))
    lost = energy_error(torch.tensor([torch.nan, torch.inf, -torch.inf, 2.0]), torch.ones(4))
    assert lost.tolist() == [torch.inf, torch.inf, torch.inf, 1.0]
    assert acceptance(lost)[:3].tolist() == [0, 0, 0]


def test_closed_form_value_is_evaluated_only_at_the_end():
    class Closed(Curved):
        asked: list

        def score(self, theta, batch, value):
            self.asked.append(value)
            theta = theta.requires_grad_()
            with torch.enable_grad():
                v = log_joint(self, theta, batch)
                (g,) = torch.autograd.grad(v.sum(), theta)
            return (v.detach() if value else None), g

    closed = Closed()
    mass = Mass.of(COVARIANCES["dense"])
    closed.asked = []
    z = start(mass)
    none = torch.zeros(0, 1)
    rows = Batch(none, none, none > 0, 1.0)  # the closed form of the density is not used
    a = leapfrog(closed, rows, mass, 0.1, z, 4)
    b = leapfrog(Curved(), rows, mass, 0.1, z, 4)
    assert closed.asked == [False, False, False, True]
    assert torch.equal(a.theta, b.theta)
    assert torch.equal(a.value, b.value)
    assert torch.equal(
        log_joint_gradient(closed, z.theta, rows), log_joint_gradient(Curved(), z.theta, rows)
    )
