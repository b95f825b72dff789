"""Variationally inferred sampling of the funnel: divergences in closed form, and draws that
approach the target."""

import math

import pytest
import torch
from support.runs.configured import load, normal
from support.targets.refined_targets import TARGET, train_refined, vis


# the funnel
def divergence(q, a, s=1.35):
    """KL(q ‖ p) of q = N(m, diag σ²) from the funnel v ~ N(0, s²), x | v ~ N(0, e^{a v}), in closed
    form."""
    m, n = q.mean.tolist()
    sv, sx = q.log_std.exp().tolist()
    entropy_terms = -0.5 * (m**2 + sv**2) / s**2 - math.log(s)
    scaled = -0.5 * (n**2 + sx**2) * math.exp(-a * m + 0.5 * a**2 * sv**2) - 0.5 * a * m
    return -(entropy_terms + scaled - math.log(2 * math.pi)) - float(q.entropy.detach())


@pytest.mark.parametrize(("spread", "kl"), [("sd", 0.768), ("variance", 0.324)])
def test_without_steps_funnel_divergence_is_closed_form(spread, kl):
    problem, _ = load("funnel", dim=2, scale=1.35, spread=spread)
    inference = vis(refine_steps=0, n_samples=30, lr=0.03, draws=2000)
    state, _, rng = train_refined(inference, TARGET, problem, 400)
    divergences = divergence(state.module, {"sd": 2, "variance": 1}[spread])
    assert kl - 0.001 < divergences < kl + 0.02
    scores = problem.score(inference.posterior(state), rng)
    assert scores["nelbo"] == pytest.approx(divergences, abs=0.1)


@pytest.mark.slow
def test_refined_divergence_matches_density():
    """q_1(z) = E_{z_0}[N(z | z_0 + η∇log p(z_0), 2η I)] by 20,000 z_0, compared with nearest
    neighbours of 4,000 draws."""
    problem, _ = load("funnel", dim=2, scale=1.35, spread="sd")
    eta = 0.03
    inference = vis(refine_steps=1, eta=eta, n_samples=10, lr=0.03, draws=2000)
    state, _, rng = train_refined(inference, TARGET, problem, 300)
    posterior = inference.posterior(state)
    with torch.no_grad():
        start = state.module.transform(normal(rng.noise, 20_000, 2))
        slope = torch.func.grad(lambda z: problem.log_density(z).sum())(start)
        means = start + eta * slope
        squares = [torch.cdist(z, means).square() for z in posterior.flat.split(500)]
        logs = torch.cat([(-each / (4 * eta)).logsumexp(1) for each in squares])
        log_q = logs - math.log(len(means) * 4 * math.pi * eta)
        kl = float((log_q - problem.log_density(posterior.flat)).mean())
    assert problem.score(posterior, rng)["kl"] == pytest.approx(kl, abs=0.05)
    assert kl > 0.3


def test_refined_draws_are_nearer_to_funnel():
    """With steps of Langevin dynamics from the guide of T = 0, the spread of v grows towards its
    exact sd 1.35."""
    problem, _ = load("funnel", dim=2, scale=1.35, spread="sd")
    keys = {"refine_steps": 0, "n_samples": 10, "lr": 0.03, "eta": 0.02, "draws": 1000}

    def spread(steps):
        inference = vis(infer_steps=steps, **keys)
        state, _, _ = train_refined(inference, TARGET, problem, 200)
        return float(inference.posterior(state).flat[:, 0].std())

    raw = spread(0)
    assert raw < 0.8
    assert raw + 0.15 < spread(100) < 1.4
