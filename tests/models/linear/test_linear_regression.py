"""The conjugate posterior compared with quadrature, densities with literal formulas, and Gibbs
blocks with the joint."""

import math
from dataclasses import replace

import pytest
import torch
from scipy import stats
from support.runs.configured import F64, build_model, double, generator
from support.small.small_problems import real
from support.targets.exact_moments import regression_moments
from support.targets.known_targets import z_score
from torch.distributions import InverseGamma, MultivariateNormal, Normal
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.inference.log_joint import log_joint
from components.maths.conjugate_regression import coefficients

VARIANCE = double([9.0, 2.25, 2.25])  # of the coefficients in units of σ²
OPTIONS = {"prior_scale": 1.5, "intercept_scale": 3.0, "noise_shape": 2.5, "noise_scale": 0.7}


def problem(n=12, n_inputs=2, missing=0.0):
    return real(n=n, n_inputs=n_inputs, n_tasks=1, missing=missing)


def build(data, **options):
    return build_model("linear_regression", data, **OPTIONS | options)


def design(data):
    """Rows with a leading one."""
    return torch.cat([torch.ones(len(data.train.x), 1, dtype=F64), data.train.x], 1)


def thetas(model, n=5, seed=1):
    return model.sample_prior(n, generator(seed))


@pytest.mark.parametrize("noise", ["learned", 0.3])
@pytest.mark.parametrize("intercept_scale", [3.0, None])
def test_log_joint_equals_its_formula(noise, intercept_scale):
    data = problem()
    model = build(data, noise=noise, intercept_scale=intercept_scale)
    theta = thetas(model)
    assert theta.shape == (5, model.dim)
    learned = noise == "learned"
    beta = theta[:, :-1] if learned else theta
    sigma2 = theta[:, -1:].exp() if learned else torch.full((5, 1), noise, dtype=F64)
    scale = double([3.0, 1.5, 1.5] if intercept_scale else [1.5, 1.5])
    X = design(data) if intercept_scale else data.train.x
    expected = Normal(0.0, scale * sigma2.sqrt()).log_prob(beta).sum(1)
    expected += Normal(beta @ X.T, sigma2.sqrt()).log_prob(data.train.y[:, 0]).sum(1)
    if learned:  # with the Jacobian of log σ²
        expected += InverseGamma(double(2.5), double(0.7)).log_prob(sigma2[:, 0]) + theta[:, -1]
    assert_close(log_joint(model, theta, data.train), expected)
    assert model.names[-1] == ("sigma2" if learned else "x2")
    assert_close(model.constrain(theta)[:, -1], theta[:, -1].exp() if learned else theta[:, -1])


def test_missing_labels_count_for_nothing():
    data = problem(n=30)
    mask = torch.arange(30)[:, None] < 20
    missing = replace(data.train, y=torch.where(mask, data.train.y, torch.nan), mask=mask)
    kept = data.train.part(slice(20), 1.0)
    model = build(data)
    theta = thetas(model)
    assert_close(log_joint(model, theta, missing), log_joint(model, theta, kept))
    assert_close(regression_moments(model, missing), regression_moments(model, kept))


def test_evidence_and_moments_match_quadrature():
    """One coefficient and σ² on a grid of the log joint that samplers use."""
    data = problem(n=7, n_inputs=1)
    model = build(data, intercept_scale=None)
    beta = torch.linspace(-4, 4, 801, dtype=F64)
    log_noise = torch.linspace(-5, 7, 1201, dtype=F64)
    theta = torch.cartesian_prod(beta, log_noise)
    cell = float((beta[1] - beta[0]) * (log_noise[1] - log_noise[0]))
    value = log_joint(model, theta, data.train)
    assert float(value.logsumexp(0)) + math.log(cell) == pytest.approx(
        float(model.log_evidence(data.train)), abs=1e-4
    )
    weight = value.softmax(0)
    parameters = model.constrain(theta)
    mean, second = regression_moments(model, data.train)
    assert_close(weight @ parameters, mean, rtol=1e-4, atol=1e-5)
    # the tail of σ⁴ leaves the grid
    assert_close(weight @ parameters**2, second, rtol=2e-3, atol=1e-4)


def test_evidence_equals_gaussian_and_student_densities():
    data = problem()
    X = design(data)
    y = data.train.y[:, 0]
    cover = torch.eye(12, dtype=F64) + X * VARIANCE @ X.T
    expected = MultivariateNormal(torch.zeros(12, dtype=F64), 0.3 * cover).log_prob(y)
    assert_close(build(data, noise=0.3).log_evidence(data.train), expected)
    # σ² ~ InvGamma(a, b) integrated out: a Student t with 2a degrees of freedom and scale matrix
    # b/a · cover
    learned = stats.multivariate_t(
        loc=[0.0] * 12, shape=(0.7 / 2.5 * cover).numpy(), df=5.0
    ).logpdf(y.numpy())
    assert float(build(data).log_evidence(data.train)) == pytest.approx(learned, rel=1e-10)


def test_known_noise_gives_the_gaussian_posterior():
    data = problem()
    model = build(data, noise=0.3)
    X = design(data)
    precision = (X.T @ X + torch.diag(1 / VARIANCE)) / 0.3
    mean = torch.linalg.solve(precision, X.T @ data.train.y[:, 0] / 0.3)
    first, second = regression_moments(model, data.train)
    assert_close(first, mean)
    assert_close(second, mean**2 + torch.linalg.inv(precision).diagonal())
    # a flat prior: least squares
    flat = coefficients(X, data.train.y[:, 0], torch.zeros(3, dtype=F64))
    assert_close(flat.m, torch.linalg.lstsq(X, data.train.y).solution[:, 0])


@pytest.mark.parametrize("block", ["beta", "sigma2"])
def test_conditionals_equal_those_of_the_joint(block):
    """log p(θ, y) − log q(θ_block | the rest) is the same for every value of the block. The density
    q is inferred from draws: a Gaussian or an inverse Gamma with their exact moments."""
    data = problem()
    model = build(data)
    batch = data.train
    X = design(data)
    rest = thetas(model, 1).expand(40_000, -1)
    drawn = model.draw_block(block, rest, batch, generator(3))
    few = drawn[:6]
    if block == "beta":
        assert torch.equal(drawn[:, -1], rest[:, -1])
        coefficients = model.coefficients(batch)
        noise = float(rest[0, -1].exp())
        covariance = noise * torch.linalg.inv(X.T @ X + torch.diag(1 / VARIANCE))
        q = MultivariateNormal(coefficients.m, covariance).log_prob(few[:, :-1])
        centred = drawn[:, :-1] - coefficients.m
        assert z_score(drawn[:, :-1], coefficients.m).abs().max() < 4
        assert z_score(torch.einsum("ki,kj->kij", centred, centred), covariance).abs().max() < 4
    else:
        assert torch.equal(drawn[:, :-1], rest[:, :-1])
        residual = batch.y[:, 0] - X @ rest[0, :-1]
        scaled = rest[0, :-1] / VARIANCE.sqrt()
        a = 2.5 + (12 + 3) / 2
        b = 0.7 + 0.5 * float(residual @ residual + scaled @ scaled)
        sigma2 = drawn[:, -1].exp()
        # density of log σ²
        q = torch.from_numpy(stats.invgamma.logpdf(sigma2[:6].numpy(), a, scale=b)) + few[:, -1]
        assert stats.kstest(sigma2.numpy(), stats.invgamma(a, scale=b).cdf).pvalue > 1e-3
    ratio = log_joint(model, few, batch) - q
    assert_close(ratio, ratio[:1].expand(6))


def test_prior_draws_follow_the_prior():
    model = build(problem())
    parameters = model.constrain(thetas(model, 20_000))
    assert stats.kstest(parameters[:, -1].numpy(), stats.invgamma(2.5, scale=0.7).cdf).pvalue > 1e-3
    unit = parameters[:, :-1] / parameters[:, -1:].sqrt() / VARIANCE.sqrt()
    for column in unit.T:
        assert stats.kstest(column.numpy(), stats.norm.cdf).pvalue > 1e-3


def test_predictive_is_exact_and_bad_options_are_refused():
    data = problem()
    model = build(data)
    theta = thetas(model, 3)
    predictive = model.predictive(theta, data.test.x)
    assert predictive.mu.shape == predictive.v.shape == (3, 12, 1)
    assert_close(predictive.mu[1, 4, 0], theta[1, 0] + data.test.x[4] @ theta[1, 1:-1])
    assert_close(float(predictive.v[2, 0, 0]), math.exp(theta[2, -1]))
    with pytest.raises(ConfigMismatchError, match="2 tasks; use igp or mlp"):
        build(real())
