"""Rows with gaps: their likelihood as dense Gaussians, EM, imputation and matrix factorisation."""

import itertools
import math

import pytest
import torch
from support.runs.configured import build_model, component, double, generator, load, normal
from support.small.unlabelled_problems import real_rows
from torch.autograd import grad
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from components.contracts.problems import Rows
from components.errors import ConfigMismatchError
from components.models.latent.linear_rows import LinearFactors, em_step, fit_factors, infer_codes
from components.posteriors.latent import LatentPosterior
from components.problems.unlabelled import Unlabelled
from runner.execution.rng import Streams

NAN = torch.nan


def with_gaps(n=60):
    whole = real_rows(n=n)
    g = generator(4)
    parts = []
    for rows in (whole.train, whole.test):
        gaps = torch.rand(rows.x.shape, generator=g) < 0.3
        gaps[0] = True  # a row without observed values
        parts.append(Rows(rows.x.masked_fill(gaps, NAN), 1.0))
    complete = torch.cat([whole.train.x, whole.test.x])
    return Unlabelled("gaps", "incomplete", *parts, None, complete=complete)


def build(problem, **keys):
    return build_model("ppca", problem, **{"latent_dim": 2} | keys)


def dense(factors):
    W, center, noise = factors
    return MultivariateNormal(center, W @ W.T + noise * torch.eye(len(center)).double())


def log_marginals(x, law):
    """log N of the observed values of each row."""
    out = []
    for row in x:
        is_observed = (~row.isnan()).nonzero()[:, 0]
        if not len(is_observed):
            out.append(torch.zeros((), dtype=x.dtype))
            continue
        covariance = law.covariance_matrix[is_observed][:, is_observed]
        out.append(MultivariateNormal(law.mean[is_observed], covariance).log_prob(row[is_observed]))
    return torch.stack(out)


def factors_of(module):
    up = module.generative.network.layers[0]
    return LinearFactors(
        *(p.detach() for p in (up.weight, up.bias, module.generative.log_noise.exp()))
    )


def some_factors():
    g = generator(0)
    W = normal(g, 4, 2)
    return LinearFactors(W, torch.randn(4, generator=g).double(), double(0.4))


def test_likelihood_equals_the_dense_one_of_observed_values():
    problem = with_gaps()
    factors = some_factors()
    expected = log_marginals(problem.train.x, dense(factors))
    assert_close(infer_codes(problem.train.x, factors).log_evidence, expected)
    module = build(problem)
    z = module.sample(problem.test, 2, Streams(0).noise)
    slopes = grad(module.log_joint(problem.test, z).sum(), module.generative.log_noise)
    assert bool(slopes[0].isfinite())
    with torch.no_grad():
        weights = LatentPosterior(module).row_log_weights(problem.test, 7, Streams(0).noise)
        paths = module.path_rows(problem.test, module.draw_noise(problem.test, 3, Streams(0).noise))
        z = torch.randn(5, problem.test.n_rows, 2).double()
        m, scale = module.location_scale(problem.test)
        q = MultivariateNormal(m, scale @ scale.mT).log_prob(z)
        assert_close(module.log_q(problem.test, z), q)
    exact = log_marginals(problem.test.x, dense(factors_of(module)))
    assert_close(weights, exact.expand(7, -1))
    assert_close(paths, exact.expand(3, -1))
    scores = problem.score(LatentPosterior(module), Streams(0))
    assert_close(scores["nll_bound"], -float(exact.mean()))
    filled = problem.test.x.nan_to_num(0.0)  # as in a model that ignores gaps
    assert abs(float((log_marginals(filled, dense(factors)) - expected).mean())) > 0.3


def test_draws_have_the_moments_of_the_posterior():
    problem = with_gaps(n=10)
    module = build(problem)
    z = module.sample(problem.test, 20000, Streams(0).noise)
    m, scale = (part.detach() for part in module.location_scale(problem.test))
    W, center, noise = factors_of(module)
    row = problem.test.x[3]
    is_observed = ~problem.test.x[3].isnan()
    M = torch.linalg.inv(torch.eye(2).double() + W[is_observed].T @ W[is_observed] / noise)
    assert_close((scale @ scale.mT)[3], M)
    assert_close(m[3], M @ W[is_observed].T @ (row - center)[is_observed] / noise)
    assert_close(z[:, 3].mean(0), m[3], atol=0.03, rtol=0)
    assert_close(z[:, 3].T.cov(), M, atol=0.03, rtol=0.03)


@pytest.mark.parametrize("weight_sd", [math.inf, 0.5])
@pytest.mark.parametrize("points", [False, True])
def test_em_never_decreases_the_likelihood(weight_sd, points):
    problem = with_gaps()
    factors = some_factors()
    values = []
    for _ in range(30):
        factors, value = em_step(problem.train.x, factors, weight_sd, points)
        values.append(float(value))
    assert min(b - a for a, b in itertools.pairwise(values)) > -1e-9
    assert values[-1] > values[0] + 1


def test_em_step_equals_its_formula():
    """Sums over the rows in which a value is observed, with explicit inverses."""
    x = with_gaps(n=20).train.x
    factors = some_factors()
    tau = 0.7
    W, center, noise = factors
    is_observed = (~x.isnan()).double()
    filled = x.nan_to_num()
    C = torch.linalg.inv(
        torch.eye(2).double() + torch.einsum("ni,ij,ik->njk", is_observed, W, W) / noise
    )
    m = torch.einsum("njk,ni,ik->nj", C, is_observed * (filled - center), W) / noise
    second = torch.ones(20, 3, 3).double()
    second[:, :2, :2] = C + m[:, :, None] * m[:, None]
    second[:, :2, 2] = second[:, 2, :2] = m
    moments = torch.einsum("ni,njk->ijk", is_observed, second)
    products = (is_observed * filled).T @ second[:, 2]
    ridge = torch.diag(double([1.0, 1.0, 0.0])) * noise / tau**2
    expected = torch.linalg.solve(moments + ridge, products)
    square = filled**2 - 2 * filled * (second[:, 2] @ expected.T)
    square = square + torch.einsum("ij,njk,ik->ni", expected, second, expected)
    after, _ = em_step(x, factors, tau, False)
    assert_close(after.weights, expected[:, :2])
    assert_close(after.center, expected[:, 2])
    assert_close(after.noise, square[is_observed == 1].mean())


def test_gradient_is_zero_after_em():
    problem = with_gaps()
    x = problem.train.x
    fit = fit_factors(x, some_factors(), math.inf, False, 1e-7)
    slopes = torch.func.grad(lambda f: infer_codes(x, f).log_evidence.sum())(fit)
    assert max(float(s.abs().max()) for s in slopes) < 0.05
    module = build(problem)
    value = module.elbo(problem.train, torch.empty(0))["elbo"].detach()
    assert float(value) == pytest.approx(float(infer_codes(x, fit).log_evidence.sum()), abs=0.02)


def test_em_without_gaps_reaches_the_closed_form():
    x = real_rows(n=60).train.x
    closed = component("model", "ppca", latent_dim=2)._closed_form(x)
    fit = fit_factors(x, some_factors(), math.inf, False, 1e-11)
    assert_close(
        fit.weights @ fit.weights.T, closed.weights @ closed.weights.T, rtol=1e-4, atol=1e-5
    )
    assert_close(fit.noise, closed.noise, rtol=1e-5, atol=0)
    assert_close(fit.center, closed.center, rtol=1e-4, atol=1e-4)


def test_gaps_are_imputed_by_conditional_gaussians():
    problem = with_gaps()
    module = build(problem)
    law = dense(factors_of(module))
    filled = module.sample_predictive(problem.test.x, 1, Streams(0).noise)
    for row, mean, v in zip(problem.test.x, filled.mean, filled.variance, strict=True):
        is_observed = ~row.isnan()
        gap = row.isnan()
        C = law.covariance_matrix
        gain = C[gap][:, is_observed] @ torch.linalg.inv(C[is_observed][:, is_observed])
        expected = law.mean[gap] + gain @ (row - law.mean)[is_observed]
        spread = (C[gap][:, gap] - gain @ C[is_observed][:, gap]).diagonal()
        assert_close(mean[gap].detach(), expected)
        assert_close(v[gap].detach(), spread)
    scores = problem.score(LatentPosterior(module), Streams(0))
    x = torch.cat([problem.train.x, problem.test.x])
    gaps = x.isnan()
    filled = module.sample_predictive(x, 1, Streams(0).noise)
    error = (filled.mean.detach() - problem.complete)[gaps]
    assert_close(scores["gap_rmse"], float(error.square().mean().sqrt()))
    assert scores["gap_rmse"] < 0.9 * float(problem.complete.std())
    table = problem.tables(LatentPosterior(module), Streams(0))["imputed"]
    sd = filled.variance[gaps].detach().sqrt()
    assert (table["sd"] - sd.numpy()).abs().max() < 1e-12
    assert table.loc[0, ["row", "column"]].tolist() == [1, 1]


def test_points_minimise_regularised_squares():
    """Salakhutdinov and Mnih (2008), eq. (4): zero gradient in z and W, with λ = σ² and σ²/τ²."""
    x = with_gaps().train.x
    tau = 0.8
    fit = fit_factors(x, some_factors(), tau, True, 1e-6)
    z = infer_codes(x, fit).mean.requires_grad_()
    W = fit.weights.clone().requires_grad_()
    residual = torch.where(x.isnan(), 0.0, x.nan_to_num(0.0) - z @ W.T - fit.center)
    energy = residual.square().sum() + fit.noise * (z.square().sum() + W.square().sum() / tau**2)
    slopes = grad(0.5 * energy, [z, W])
    assert max(float(s.abs().max()) for s in slopes) < 0.01


def test_column_without_values_is_refused():
    problem = with_gaps()
    first, two = (build(problem, latents="points", weight_sd=sd) for sd in (None, 1.0))
    assert torch.equal(factors_of(first).weights, factors_of(two).weights)
    problem.train.x[:, 2] = NAN
    with pytest.raises(ConfigMismatchError, match=r"column 3 has no observed value .*; remove it"):
        build(problem)


def test_values_are_removed_and_held_out():
    problem, _ = load("measured_rows", set="wine", gaps=0.3)
    whole, _ = load("measured_rows", set="wine")
    gaps = problem.train.x.isnan()
    assert gaps.double().mean() == pytest.approx(0.3, abs=0.03)
    assert torch.equal(problem.complete, torch.cat([whole.train.x, whole.test.x]))
    assert torch.equal(problem.train.x[~gaps], whole.train.x[~gaps])
    inside = problem.held_out(0.2, Streams(0))
    x = torch.cat([inside.train.x, inside.test.x])
    assert torch.equal(inside.complete[~x.isnan()], x[~x.isnan()])
