"""Decoders trained on refined draws: Fisher's identity for probabilistic PCA with known
likelihood."""

import pytest
import torch
from support.runs.configured import F64, component, normal
from support.small.small_problems import train as trained
from support.small.unlabelled_problems import ppca, real_rows
from test_iwae import fisher, z_scores
from torch.testing import assert_close

from components.errors import NumericalError
from components.inference.latent.draws import joint_field
from components.maths.row_hamiltonian import transition
from components.models.latent.generative import log_normal
from runner.execution.rng import Streams

N = 12


@pytest.fixture
def problem():
    return real_rows(n=N)


def hmc(**changes):
    return component("inference", "hmc_dlgm", **changes)


def parts(gradients, module):
    """Gradients of the generative model [P_θ] and of the guide [P_φ]."""
    n = len(list(module.generative.parameters()))
    return tuple(torch.cat([g.flatten() for g in some]) for some in (gradients[:n], gradients[n:]))


def test_fields_match_log_joint_and_gradient(problem):
    module = ppca(problem, exact_guide=False)
    z = torch.randn(3, N, 2, dtype=F64)
    goes, value, slope = joint_field(module, problem.train, z)
    assert torch.equal(goes, value)
    assert_close(value, module.log_joint(problem.train, z).detach())
    h = 1e-5
    for d in range(2):
        up, down = (
            module.log_joint(problem.train, z + sign * h * torch.eye(2)[d]) for sign in (1, -1)
        )
        assert_close(slope[..., d], ((up - down) / (2 * h)).detach(), rtol=1e-5, atol=1e-5)


def test_hmc_leaves_posterior_invariant(problem):
    """Means and variances match p(z|x) with steps so large that at least a tenth of the proposals
    are rejected."""
    module = ppca(problem, exact_guide=True)
    with torch.no_grad():
        m, s = module.encode(problem.train)
    g = Streams(0).noise
    S = 20_000
    z = m + s * normal(g, S, N, 2)
    rates = []
    for _ in range(2):
        z, _, rate = transition(lambda at: joint_field(module, problem.train, at), z, 1.2 * s, 2, g)
        rates.append(rate.mean())
    assert 0.5 < torch.stack(rates).mean() < 0.95
    assert ((z.mean(0) - m) / (s / S**0.5)).abs().max() < 4.5
    assert (z.var(0) / s.square() - 1).abs().max() < 4.5 * (2 / S) ** 0.5


def test_exact_draws_give_likelihood_gradient(problem):
    """Fisher's identity, for any number of iterations and with occasional rejections."""
    module = ppca(problem, exact_guide=True)
    rng = Streams(0)
    inference = hmc(improve_steps=2, leapfrog_steps=2)
    draws = [
        parts(inference.gradient(module, problem.train, 1.2, rng.noise)[0], module)[0]
        for _ in range(300)
    ]
    assert z_scores(draws, fisher(module, problem.train.x)).abs().max() < 4


def test_iterations_compensate_for_wrong_guide(problem):
    module = ppca(problem, exact_guide=False)
    rng = Streams(0)
    expected = fisher(module, problem.train.x)
    inference = hmc(improve_steps=12, n_samples=100)
    refined = [
        parts(inference.gradient(module, problem.train, 0.3, rng.noise)[0], module)[0]
        for _ in range(20)
    ]
    assert z_scores(refined, expected).abs().max() < 4.5
    elbo = module.elbo_rows(problem.train, normal(rng.noise, 4_000, N, 2))
    of_elbo = torch.autograd.grad(elbo.mean(0).sum(), list(module.generative.parameters()))
    bias = (torch.cat([g.flatten() for g in of_elbo]) - expected).abs()
    assert bias.max() > 10 * float((torch.stack(refined).mean(0) - expected).abs().max())


def test_guide_maximises_its_own_bound(problem):
    """The gradient uses only the draws from which HMC starts."""
    module = ppca(problem, exact_guide=False)
    actual, info = hmc(n_samples=3).gradient(module, problem.train, 0.3, Streams(4).noise)
    m, s = module.encode(problem.train)
    z = m + s * normal(Streams(4).noise, 3, N, 2)
    elbo = (module.log_joint(problem.train, z) - log_normal(z, m, s)).mean(0).sum()
    expected = torch.autograd.grad(elbo, list(module.guide.parameters()))
    assert_close(parts(actual, module)[1], torch.cat([g.flatten() for g in expected]))
    assert float(info["elbo"]) == pytest.approx(float(elbo.detach()))


def test_step_sizes_adapt_to_target_acceptance(problem):
    vae = component("model", "vae", latent_dim=2, widths=[4])
    state, rng = trained(
        hmc(step_size=3.0, target_acceptance=0.8, improve_steps=2), vae, problem, 100
    )
    rates = []
    for _ in range(60):
        state, info = hmc(target_acceptance=0.8, improve_steps=2).step(state, problem.train, rng)
        rates.append(float(info["acceptance"]))
    assert sum(rates) / 60 == pytest.approx(0.8, abs=0.08)
    assert info["step_size"] < 3


def test_nonfinite_values_stop_the_run(problem):
    module = ppca(problem, exact_guide=False)
    state = hmc().init(module, problem, Streams(0))
    with torch.no_grad():
        next(module.generative.parameters()).fill_(float("nan"))
    with pytest.raises(NumericalError, match=r"lower inference\.lr"):
        hmc().step(state, problem.train, Streams(0))
