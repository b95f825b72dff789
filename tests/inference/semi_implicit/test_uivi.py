"""The unbiased gradient of implicit posteriors compared with the exact gradient of an affine
family."""

import torch
from support.runs.configured import F64, double, normal
from support.targets.affine_families import (
    BIAS,
    COVARIANCE,
    STD,
    WEIGHT,
    affine,
    clone_parameters,
    exact_elbo,
    flat,
    gradients,
    target,
)
from support.targets.known_targets import z_score

from components.inference.semi_implicit.transitions import iterate
from components.inference.semi_implicit.uivi import ReverseConditional
from runner.execution.rng import Streams

ENOUGH = {"reverse_burn_in": 12, "reverse_samples": 2, "leapfrog_steps": 4, "step_size": 0.35}


def exact_gradient():
    values = clone_parameters()
    return flat(torch.autograd.grad(exact_elbo(*values, target()), values))


def test_gradient_is_unbiased():
    inference, state, rng = affine("uivi", n_samples=400, **ENOUGH)
    estimates = gradients(inference, state, rng, 40)
    assert z_score(estimates, exact_gradient()).abs().max() < 4.5


def test_fixed_chain_gives_conditional_gradient():
    """With ε′ = ε, ∇_z log q(z|ε) replaces ∇_z log q(z), which gives the gradient of L_0."""
    still = {"reverse_burn_in": 0, "reverse_samples": 1, "leapfrog_steps": 1, "step_size": 1e-9}
    inference, state, rng = affine("uivi", n_samples=400, **still)
    estimates = gradients(inference, state, rng, 40)
    values = clone_parameters()
    lowest = exact_elbo(*values, target()) - 0.5 * torch.logdet(
        values[0] @ values[0].T + (2 * values[2]).exp().diag()
    )
    expected = flat(torch.autograd.grad(lowest + values[2].sum(), values))
    assert z_score(estimates, expected).abs().max() < 4.5
    assert z_score(estimates, exact_gradient()).abs().max() > 20


def test_marginal_gradient_matches_closed_form():
    """E_{q(ε|z)}[∇_z log q(z|ε)] = −(W Wᵀ + diag s²)⁻¹ (z − b), at one z of many chains."""
    inference, state, rng = affine("uivi", **ENOUGH)
    z = double([[1.2, -0.9]]).expand(3000, 2)
    precision = torch.eye(2, dtype=F64) + WEIGHT.T @ torch.diag(STD**-2) @ WEIGHT
    factor = torch.linalg.cholesky(torch.linalg.inv(precision))
    centre = torch.linalg.solve(precision, WEIGHT.T @ ((z[0] - BIAS) / STD**2))
    # exact draws of q(ε|z)
    start = centre + normal(rng.noise, 3000, 2) @ factor.T
    estimate, rate = inference.estimate_score_function(state.q, z, start, 0.35, rng.noise)
    exact = -torch.linalg.solve(COVARIANCE, z[0] - BIAS)
    assert z_score(estimate, exact).abs().max() < 4
    assert rate > 0.9
    states, _ = iterate(ReverseConditional(state.q, z), None, start, 5, 4, 0.35, rng.noise)
    assert z_score(states[-1], centre).abs().max() < 4


def test_averaged_gradient_matches_definition():
    inference, state, rng = affine("uivi", reverse_burn_in=2, reverse_samples=3, leapfrog_steps=2)
    z, epsilon = (normal(rng.noise, 4, 2) for _ in range(2))
    repeat = Streams(0).noise
    repeat.set_state(rng.noise.get_state())
    estimate, _ = inference.estimate_score_function(state.q, z, epsilon, 0.3, rng.noise)
    states, _ = iterate(ReverseConditional(state.q, z), None, epsilon, 5, 2, 0.3, repeat)
    for s in range(4):
        slopes = [-(z[s] - WEIGHT @ states[j, s] - BIAS) / STD**2 for j in (2, 3, 4)]
        assert torch.allclose(estimate[s], torch.stack(slopes).mean(0))
