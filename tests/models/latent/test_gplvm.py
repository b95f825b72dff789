"""The Bayesian GPLVM: ψ statistics by Monte Carlo, limits that must coincide, and scores."""

import math

import torch
from support.runs.configured import build_model, component, generator
from support.small.small_problems import train
from support.small.unlabelled_problems import real_rows
from torch.testing import assert_close

from components.maths.kernels import kernel
from runner.execution.rng import Streams

KEYS = {"latent_dim": 2, "n_inducing": 6, "encoder_steps": 30}


def module(**keys):
    problem = real_rows(n=15)
    built = build_model("gplvm", problem, **KEYS | keys)
    g = generator(3)
    with torch.no_grad():
        for p in built.parameters():
            p += 0.2 * torch.randn(p.shape, generator=g, dtype=p.dtype)
    return built, problem.train


def se(built, a, b):
    length = built.log_lengthscale.exp()
    variance = built.log_variance.exp()
    return kernel(a, b, length, variance, "squared_exponential")


def test_psi_statistics_are_exact_expectations():
    built, _ = module()
    with torch.no_grad():
        m, v = built._latents()
        psi_1, two = built.psi_statistics(m, v)
        g = generator(0)
        z = m + v.sqrt() * torch.randn(4000, *m.shape, generator=g, dtype=m.dtype)
        K = se(built, z, built.inducing.expand(len(z), -1, -1))  # [S, N, M]
        each = torch.einsum("snm,snk->smk", K, K)
    for ours, draws in ((psi_1, K), (two, each)):
        error = draws.std(0) / math.sqrt(len(draws))
        assert ((ours - draws.mean(0)) / error).abs().max() < 4.5
    wrong = built.psi_statistics(m, 1.3 * v)[1].detach()  # another variance
    assert ((wrong - each.mean(0)) / (each.std(0) / math.sqrt(len(each)))).abs().max() > 4.5


def test_psi_statistics_of_points_are_kernels():
    built, _ = module(latents="points")
    m, v = built._latents()
    psi_1, two = built.psi_statistics(m, v)
    K = se(built, m, built.inducing)
    assert_close(psi_1, K)
    assert_close(two, K.T @ K)


def test_bound_of_points_equals_its_formula():
    """Σ_i ln N(x_i | 0, Q + σ² I) − tr(K − Q)/2σ² + ln N(z | 0, I) with Q = K_nm K_mm⁻¹ K_mn."""
    built, train = module(latents="points")
    terms = built.elbo(train, None)
    with torch.no_grad():
        z = built.q_mean
        Z = built.inducing
        noise = built.log_noise.exp()
        variance = built.log_variance.exp()
        cross = se(built, z, Z)
        jitter = built.settings.jitter * variance * torch.eye(len(Z), dtype=z.dtype)
        Q = cross @ torch.linalg.solve(se(built, Z, Z) + jitter, cross.T)
        C = Q + noise * torch.eye(len(z), dtype=z.dtype)
        rows = train.x - train.x.mean(0)
        literal = -0.5 * (rows * torch.linalg.solve(C, rows)).sum()
        literal = literal - 2 * (torch.logdet(C) + len(z) * math.log(2 * math.pi))  # 4 values
        literal = literal - 2 * (len(z) * variance - Q.trace()) / noise
        prior = -0.5 * (z.square() + math.log(2 * math.pi)).sum()
    assert_close(terms["log_likelihood"], literal)
    assert_close(terms["elbo"], literal + prior)


def test_bound_rises_and_held_out_rows_are_scored():
    problem = real_rows(n=25)
    model = component("model", "gplvm", **KEYS)
    inference = component("inference", "lbfgs")
    state = inference.init(model.build(problem, Streams(0)), problem, Streams(0))
    bounds = []
    for _ in range(6):
        state, info = inference.step(state, problem.train, Streams(0))
        bounds.append(float(info["elbo"]))
    assert bounds == sorted(bounds)
    assert bounds[-1] > bounds[0] + 1
    scores = problem.score(inference.posterior(state), Streams(0))
    assert scores["nll_bound"] <= scores["nelbo"]


@torch.no_grad()
def test_guide_of_a_held_out_row_has_the_largest_bound():
    """Compared with guides near it, using draws that it was not fitted to; five fixed draws would
    not suffice."""
    problem = real_rows(n=40)
    built = build_model("gplvm", problem, **KEYS | {"encoder_steps": 150})
    inference = component("inference", "lbfgs")
    with torch.enable_grad():
        state, _ = train(inference, built, problem, 5)
    fitted = state.module
    batch = problem.test
    m, s = fitted.encode(batch)
    eps = torch.randn(4000, *m.shape, generator=generator(1), dtype=m.dtype)

    def estimate_bound(mean, scale):
        kl = 0.5 * (mean.square() + scale.square() - 1 - 2 * scale.log()).sum(-1)
        return float((fitted.rows_at(batch, mean + scale * eps).mean(0) - kl).mean())

    for shift, factor in ((0.0, 0.6), (0.0, 1.6), (0.3, 1.0), (-0.3, 1.0)):
        assert estimate_bound(m, s) > estimate_bound(m + shift * s, factor * s), (shift, factor)
