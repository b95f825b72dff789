"""Poisson labels with a log link: literal expectation and predictive, and a GLM as a limit."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from support.runs.configured import build_model, component, double, generator, normal
from support.small.shallow_gp_problems import F64, elbo_of, problem, streams
from torch.testing import assert_close

from components.contracts.predictive import PoissonMixture, components_of, join
from components.contracts.problems import Batch
from components.errors import ConfigMismatchError
from components.metrics import regression
from components.models.deep_gp.likelihoods import PoissonLabels
from components.problems.supervised import Supervised

LIKE = torch.zeros((), dtype=F64)


def counts(n=60, seed=0):
    """Counts of rate exp(0.5 + 0.8 x₁ − 0.4 x₂)."""
    g = generator(seed)
    x = normal(g, n, 2)
    rate = (0.5 + 0.8 * x[:, :1] - 0.4 * x[:, 1:]).exp()
    y = torch.poisson(rate, generator=g)
    batch = Batch(x, y, torch.ones_like(y, dtype=torch.bool), 1.0)
    return Supervised("counts", "real", batch, batch, None, task_names=["y"])


def test_poisson_expectation_equals_a_fine_grid():
    """E log Poisson(y | eᶠ) under f ~ N(μ, v) by a fine grid."""
    grid = torch.linspace(-12, 12, 40_001, dtype=F64)
    for y, mu, v in [(0.0, 0.3, 0.5), (4.0, -0.7, 0.2), (2.0, 1.1, 1.3)]:
        f = mu + math.sqrt(v) * grid
        log_p = torch.as_tensor(stats.poisson(f.exp().numpy()).logpmf(y))
        weight = torch.exp(-0.5 * grid**2) / math.sqrt(2 * math.pi)
        exact = torch.trapezoid(log_p * weight, grid)
        shape = (1, 1, 1, 1)
        mean, variance = (torch.full(shape, value, dtype=F64) for value in (mu, v))
        labels = PoissonLabels(20, LIKE)
        ours = labels.expected_log_prob(double([[y]]), mean, variance, None)
        assert float(ours) == pytest.approx(float(exact), abs=1e-8)
        at_mean = labels.expected_log_prob(double([[y]]), mean, torch.zeros_like(variance), None)
        assert abs(float(at_mean) - float(exact)) > 0.05  # the value differs without v/2


def test_poisson_predictive_equals_a_fine_grid():
    mean = torch.full((1, 1, 1, 1), 0.4, dtype=F64)
    variance = torch.full((1, 1, 1, 1), 0.3)
    p = PoissonLabels(30, LIKE).predictive(mean, variance.double(), None)
    assert isinstance(p, PoissonMixture)
    rate = double([[0.4 + 0.15]]).exp()
    assert_close(p.mean, rate)
    total_variance = rate + rate.square() * (math.exp(0.3) - 1)
    assert_close(p.variance, total_variance)
    ks = torch.arange(60, dtype=F64)[:, None]
    probabilities = PoissonMixture(p.log_rate.expand(-1, 60, 1), p.log_weights).log_prob(ks).exp()
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-9)
    wide = PoissonMixture(p.log_rate.expand(-1, 60, 1), p.log_weights)
    assert_close(wide.cdf(ks), probabilities.cumsum(0))
    quantile = float(p.quantile(0.95))
    assert float(p.cdf(double([[quantile]]))) >= 0.95
    assert float(p.cdf(double([[quantile - 1]]))) < 0.95
    assert float(p.cdf(double([[-1.0]]))) == 0.0


def test_scores_of_counts_equal_sums_over_values():
    """CRPS and coverage of one Poisson distribution, compared with sums over its values."""
    law = PoissonMixture(torch.full((1, 3, 1), math.log(3.0), dtype=F64), torch.zeros(1))
    y = double([[0.0], [3.0], [9.0]])
    out = regression.scores(law, y, torch.ones_like(y, dtype=torch.bool), ["y"])
    k = np.arange(60)
    cdf = stats.poisson(3.0).cdf(k)
    exact = np.mean([((cdf - (k >= v)) ** 2).sum() for v in (0, 3, 9)])
    assert out["crps"] == pytest.approx(exact, abs=1e-8)
    assert_close(out["coverage90"], 1 / 3)  # P(Y ≤ 0) = .0498, P(Y < 9) = .996
    assert_close(out["nlpp"], -stats.poisson(3.0).logpmf([0, 3, 9]).mean())


def test_mixture_components_keep_their_weights():
    a = PoissonMixture(torch.zeros(2, 1, 1, dtype=F64), double([0.0, 1.0]))
    both = join([a, PoissonMixture(a.log_rate + 1, a.log_weights)], 0)
    assert isinstance(both, PoissonMixture)
    assert_close(float(both.mean), (1 + math.e) / 2)
    assert components_of(join([a, a], 1)).shape == (2, 2, 1)


@pytest.mark.slow
def test_linear_kernel_is_a_poisson_regression():
    """The coefficients under a wide prior equal maximum likelihood estimates."""
    data = counts(300)
    model = component(
        "model",
        "igp",
        posterior="sparse",
        kernel="linear",
        mean="constant",
        hyperprior=None,
        link="log",
        n_inducing=2,
        lengthscale=1.0,
        ard="none",
        variance=100.0,
    )
    module = model.build(data, streams())
    module.q_tril.data.mul_(0.01)
    parameters = [module.q_mean, module.q_tril, module.mean.bias]
    optimizer = torch.optim.LBFGS(parameters, max_iter=40, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        value = -elbo_of(module, data.train)
        value.backward()
        return value

    optimizer.step(loss)
    x = double([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    mean, _, _ = module.marginals(x[None], torch.zeros(1, 1, dtype=torch.long))
    f = mean[0, 0, :, 0].detach().numpy()
    X = np.column_stack([np.ones(300), data.train.x.numpy()])
    y = data.train.y[:, 0].numpy()
    beta = np.zeros(3)
    for _ in range(20):  # Newton's method
        rate = np.exp(X @ beta)
        beta += np.linalg.solve(X.T @ (rate[:, None] * X), X.T @ (y - rate))
    assert [f[0], f[1] - f[0], f[2] - f[0]] == pytest.approx(beta.tolist(), abs=0.01)


def test_labels_that_are_not_counts_are_refused():
    model = component("model", "igp", posterior="sparse", link="log")
    with pytest.raises(ConfigMismatchError, match="requires counts"):
        model.build(problem(), streams())
    exact = component("model", "igp", posterior="exact", link="log")
    with pytest.raises(ConfigMismatchError, match=r"model.posterior=sparse"):
        exact.build(counts(), streams())


def test_deep_process_supports_counts():
    """The closed form supports a deep GP: its bound is finite, and it predicts counts."""
    data = counts(30)
    options = {"n_inducing": 5, "depth": 1, "inner_dim": 2, "link": "log"}
    module = build_model("idgp", data, **options)
    noise = module.draw_noise(data.train, 3, streams().noise)
    assert bool(module.elbo(data.train, noise)["elbo"].isfinite())
    predictive = module.sample_predictive(data.train.x, 4, streams().noise)
    assert isinstance(predictive, PoissonMixture)
    assert predictive.log_rate.shape == (4 * 20, 30, 1)
    given = module.predict_f(data.train.x, 7, streams().noise)
    assert components_of(given).shape == (7, 30, 1)
