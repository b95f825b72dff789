"""A mixture of Gaussians: densities, its bound, EM, and exact Gibbs sampling."""

import itertools
import math

import numpy as np
import pytest
import torch
from support.runs.configured import component, double, generator, load, normal
from support.small.small_problems import train
from support.targets.known_targets import z_score
from support.targets.mean_field_families import F64, build_model, fit_factors, rows
from torch.autograd.functional import jacobian
from torch.distributions import Dirichlet, MultivariateNormal, Wishart
from torch.testing import assert_close

from components.errors import ConfigMismatchError, NumericalError
from components.metrics.unlabelled.clusters import adjusted_rand


def few(n=4, D=1, **changes):
    problem = rows(n=n, D=D)
    keys = {"clusters": 2, "concentration": 1.5, "mean_rows": 0.5} | changes
    return build_model("gaussian_mixture", problem, **keys), problem


def log_parameters(log_pi, mu, L, alpha, m, beta, V, nu):
    """Log density of weights ~ Dirichlet and of (μ_k, Λ_k) ~ normal-Wishart [S], Λ = L Lᵀ."""
    Lambda = L @ L.mT
    clusters = Wishart(nu, torch.linalg.inv(V)).log_prob(Lambda)
    clusters += MultivariateNormal(m, precision_matrix=beta[..., None, None] * Lambda).log_prob(mu)
    return Dirichlet(alpha).log_prob(log_pi.exp()) + clusters.sum(-1)


def of_prior(model):
    p = model.prior
    return torch.full((model.n_clusters,), model.alpha, dtype=F64), p.m, p.beta, p.V, p.nu


def log_rows(log_pi, mu, L, x):
    """log π_k N(x | μ_k, Λ_k⁻¹) [S, B, K]."""
    law = MultivariateNormal(mu[:, None], precision_matrix=(L @ L.mT)[:, None])
    return log_pi[:, None] + law.log_prob(x[:, None])


def test_log_joint_equals_its_formula():
    model, problem = few(D=2)
    theta = model.sample_prior(3, generator(0))
    assert theta.shape == (3, model.dim)
    parts = model.split(theta)
    assert_close(model.join(*parts), theta)
    likelihood = log_rows(*parts, problem.train.x).logsumexp(2)
    assert_close(model.log_likelihood(theta, problem.train), likelihood)

    def natural(t):  # (π_1, μ, lower triangles of Λ), variables of the prior density
        a, m, R = model.split(t[None])
        row, column = torch.tril_indices(2, 2)
        return torch.cat([a.exp()[0, :1], m.flatten(), (R @ R.mT)[0][:, row, column].flatten()])

    jacobians = [torch.linalg.slogdet(jacobian(natural, t))[1] for t in theta]
    expected = log_parameters(*parts, *of_prior(model)) + torch.stack(jacobians)
    assert_close(model.log_prior(theta), expected)


def exact(model, x):
    """log p(z, x) of every labelling of the rows, by conjugacy."""
    every = {}
    alpha = model.alpha
    for z in itertools.product(range(model.n_clusters), repeat=len(x)):
        n = np.bincount(z, minlength=model.n_clusters)
        K = model.n_clusters
        value = math.lgamma(K * alpha) - math.lgamma(K * alpha + len(x))
        value += sum(math.lgamma(alpha + c) - math.lgamma(alpha) for c in n)
        for k in range(K):
            law = model.prior
            for row in x[[i for i, c in enumerate(z) if c == k]]:
                value += float(law.log_predictive(row[None])[0])
                law = law.posterior(torch.ones(1, dtype=F64), row[None])
        every[z] = value
    return every


@pytest.mark.parametrize("cycles", [0, 4])
def test_bound_is_its_expectation_and_below_the_evidence(cycles):
    """Σ_z q(z) E_q(θ)[log p(x, z, θ) − log q(z) q(θ)] with the best q(z), over draws of θ."""
    model, problem = few()
    ascent = model.mean_field()
    x = problem.train.x
    factors = fit_factors(ascent, problem.train, cycles)
    r = ascent.responsibilities(factors, problem.train)[0]
    parts = model.split(ascent.draw(factors, 20_000, generator(1)))
    q = [factors[name][0] for name in ("alpha", "m", "beta", "V", "nu")]
    ratio = log_parameters(*parts, *of_prior(model)) - log_parameters(*parts, *q)
    draws = (r * (log_rows(*parts, x) - r.log())).sum((1, 2)) + ratio
    bound = ascent.objective(factors, problem.train)
    assert z_score(draws[:, None], bound).abs() < 4
    evidence = np.logaddexp.reduce(list(exact(model, x).values()))
    assert evidence - (2.5 if cycles else 20) < float(bound) < evidence


def test_one_cluster_is_exact():
    model, problem = few(D=2, clusters=1)
    factors = fit_factors(model.mean_field(), problem.train, 1)
    (evidence,) = exact(model, problem.train.x).values()
    assert float(model.mean_field().objective(factors, problem.train)) == pytest.approx(
        evidence, rel=1e-10
    )


def test_gibbs_has_the_exact_predictive_of_all_labellings():
    model, problem = few()
    x = problem.train.x
    new = problem.test.x[:3]
    every = exact(model, x)
    total = np.logaddexp.reduce(list(every.values()))
    expected = np.zeros(3)
    for z, value in every.items():
        n = np.bincount(z, minlength=2)
        for k in range(2):
            law = model.prior.posterior(double([float(c == k) for c in z]), x)
            share = (model.alpha + n[k]) / (2 * model.alpha + 4)
            expected += math.exp(value - total) * share * law.log_predictive(new).exp().numpy()
    g = generator(0)
    theta = model.sample_prior(400, g)
    densities = []
    for t in range(40):
        theta = model.draw_block("clusters", theta, problem.train, g)
        if t >= 10:
            densities.append(model.log_likelihood(theta, type(problem.test)(new, 1.0)).exp())
    by_chain = torch.stack(densities).mean(0)  # 400 independent chains
    error = by_chain.std(0) / 20
    assert ((by_chain.mean(0) - torch.from_numpy(expected)).abs() < 4.5 * error).all()


def test_penalised_em_is_at_a_mode_of_the_literal_posterior():
    problem, _ = load("mixture_sim", n_train=120, n_test=50, spread=4.0)
    model = build_model("gaussian_mixture", problem, concentration=2.0)
    ascent = model.point_masses(True)
    initial = ascent.start(problem.train, 1, generator(0))
    factors = fit_factors(ascent, problem.train, 200)

    def literal(f):
        L = torch.linalg.cholesky(torch.linalg.inv(f["covariance"]))
        parts = f["log_pi"], f["mu"], L
        likelihood = log_rows(*parts, problem.train.x).logsumexp(2).sum(1)
        return likelihood + log_parameters(*parts, *of_prior(model))

    for f in (initial, factors):
        assert_close(ascent.objective(f, problem.train), literal(f))
    top = literal(factors)
    g = generator(1)
    for _ in range(12):
        a, m, s = (0.02 * normal(g, 1, 3, *size) for size in ((), (2,), (2,)))
        stretch = s.exp().diag_embed()
        shifted = {
            "log_pi": (factors["log_pi"] + a).log_softmax(1),
            "mu": factors["mu"] + m,
            "covariance": stretch @ factors["covariance"] @ stretch,
        }
        assert literal(shifted) < top
    for step in 1e-3 * torch.eye(3, dtype=F64):  # with zero gradient in the weights
        ends = [
            literal(factors | {"log_pi": (factors["log_pi"] + way * step).log_softmax(1)})
            for way in (1, -1)
        ]
        assert abs(float(ends[0] - ends[1])) / 2e-3 < 1e-3


def test_degenerate_fits_are_refused():
    for keys, message in (
        ({"clusters": 9}, r"model\.clusters=9: dataset=few has only 4 training rows; lower it"),
        ({"D": 2, "freedom": 0.5}, r"model\.freedom=0\.5: must exceed 1 for rows of 2 values"),
    ):
        with pytest.raises(ConfigMismatchError, match=message):
            few(**keys)
    model, problem = few(clusters=3)
    with pytest.raises(
        NumericalError, match=r"a cluster has collapsed .*; set inference.penalised=true"
    ):
        fit_factors(model.point_masses(False), problem.train, 300)


def test_draws_predict_rows_and_recover_clusters():
    problem, _ = load("mixture_sim", n_train=100, n_test=200)
    inference = component("inference", "cavi", draws=200)
    state, rng = train(inference, component("model", "gaussian_mixture"), problem, 60)
    posterior = inference.posterior(state)
    by_draws = super(type(posterior), posterior).log_predictive(problem.test)
    assert (by_draws - posterior.log_predictive(problem.test)).abs().mean() < 0.05
    assert problem.score(posterior, rng)["ari"] > 0.9
    drawn = super(type(posterior), posterior).clusters(problem.test)
    assert adjusted_rand(drawn.argmax(1), posterior.clusters(problem.test).argmax(1)) > 0.95
    assert set(problem.draw(posterior, rng)) >= {"clusters", "bound_by_start", "pairs"}
