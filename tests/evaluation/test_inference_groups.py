"""Labels in InferenceData, compared with literal densities, and results of ArviZ from them."""

import math
import warnings
from dataclasses import replace

import arviz_stats
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import norm
from support.runs.configured import F64, draw_normal, generator, normal
from support.series.structural_series import TIMES, draw_theta, model, problem
from torch import nn
from torch.distributions import Normal

from components.contracts.predictive import Categorical, GaussianMixture
from components.contracts.problems import Batch, Rows
from components.errors import ConfigMismatchError, IncompleteResultWarning
from components.evaluation import inference_groups as module
from components.evaluation.inference_groups import inference_groups
from components.posteriors.draws import Draws
from components.posteriors.networks import Networks
from components.posteriors.point_estimate import PointEstimate
from components.posteriors.variational import VariationalPosterior
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.series.structural.structural_posterior import StructuralDraws
from runner import run
from runner.execution.rng import Streams

N = 30
SIGMA = 0.5


class Line:
    """y = θ_0 + θ_1 x + N(0, σ²), θ_i ~ N(0, 1)."""

    def constrain(self, theta):
        return theta

    def predictive(self, theta, x):
        mu = theta[:, :1] + theta[:, 1:] * x[:, 0]
        return GaussianMixture(mu.unsqueeze(2), torch.full_like(mu, SIGMA**2).unsqueeze(2))


class Odds(Line):
    """Two tasks of three classes with logits θ_c x."""

    def predictive(self, theta, x):
        logits = theta.unsqueeze(1) * x  # [S, B, 3]
        return Categorical(torch.stack([logits, -logits], 2))


def regression():
    x = draw_normal(N, 1)
    y = 0.3 - 0.8 * x + SIGMA * draw_normal(N, 1, seed=2)
    batch = Batch(x, y, torch.ones(N, 1, dtype=torch.bool), 1.0)
    return Supervised("line", "real", batch, batch.part(slice(0, 2), 1.0), None)


def exact(x, y):
    """p(θ | x, y), and log p(y_i | the others) for each omitted label."""
    X = torch.cat([torch.ones_like(x), x], 1)
    P = X.T @ X / SIGMA**2 + torch.eye(2, dtype=F64)
    return torch.linalg.solve(P, X.T @ y / SIGMA**2)[:, 0], torch.linalg.inv(P), X


def draws_of(mean, covariance, chains=4, n=500):
    z = draw_normal(chains, n, 2, seed=1)
    theta = mean + z @ torch.linalg.cholesky(covariance).T
    return Draws(theta, mean.expand(chains, 2), ["a", "b"], Line(), stats={"lp": theta.sum(2)})


def test_regression_loo_matches_exact_values():
    data = regression()
    x = data.train.x
    y = data.train.y
    mean, covariance, X = exact(x, y)
    tree = inference_groups(data, draws_of(mean, covariance, n=5_000), Streams(0))
    theta = tree["posterior"]["a"].values, tree["posterior"]["b"].values
    mu = theta[0][..., None] + theta[1][..., None] * x[:, 0].numpy()
    literal = norm.logpdf(y[:, 0].numpy(), mu, SIGMA)
    assert_allclose(tree["log_likelihood"]["y"].values, literal, rtol=1e-12)
    np.testing.assert_array_equal(tree["observed_data"]["y"].values, y[:, 0].numpy())
    assert tree["log_likelihood"]["y"].dims == ("chain", "draw", "row")
    left_out = []
    for i in range(N):
        others = torch.arange(N) != i
        m, C, _ = exact(x[others], y[others])
        sd = (X[i] @ C @ X[i] + SIGMA**2).sqrt()
        left_out.append(float(Normal(X[i] @ m, sd).log_prob(y[i, 0])))
    loo_result = arviz_stats.loo(tree, pointwise=True)
    assert float(loo_result.elpd) == pytest.approx(sum(left_out), abs=0.05)
    assert_allclose(loo_result.elpd_i.values, left_out, atol=0.03)
    predictive = tree["posterior_predictive"]["y"].values
    assert_allclose(predictive.mean((0, 1)), (X @ mean).numpy(), atol=0.06)
    assert_allclose(
        predictive.var((0, 1)), ((X @ covariance) * X).sum(1).numpy() + SIGMA**2, rtol=0.12
    )
    worse = inference_groups(data, draws_of(mean + 1, covariance, n=5_000), Streams(0))
    assert list(arviz_stats.compare({"wrong": worse, "right": tree}).index) == ["right", "wrong"]


def test_missing_labels_are_excluded_from_groups():
    g = generator()
    x = normal(g, 5, 1)
    y = torch.randint(3, (5, 2), generator=g)
    mask = torch.ones(5, 2, dtype=torch.bool)
    theta = normal(g, 2, 2000, 3)
    draws = Draws(theta, theta[:, 0], [], Odds())
    batch = Batch(x, y, mask, 1.0)
    tasks = ["up", "down"]
    data = Supervised("classes", "classes", batch, batch, None, n_classes=3, task_names=tasks)
    whole = inference_groups(data, draws, Streams(0))["log_likelihood"]["y"]
    assert whole.dims == ("chain", "draw", "row", "task")
    assert whole.coords["task"].values.tolist() == ["up", "down"]
    logits = theta[1, 3] * x[2]
    assert float(whole[1, 3, 2, 1]) == pytest.approx(float(torch.log_softmax(-logits, 0)[y[2, 1]]))
    mask[2, 1] = False
    y[2, 1] = -1
    some = inference_groups(data, draws, Streams(0))
    assert some["log_likelihood"]["y"].dims == ("chain", "draw", "label")
    labels = some["observed_data"]["y"].coords["label"].values.tolist()
    assert " ".join(labels) == "0/up 0/down 1/up 1/down 2/up 3/up 3/down 4/up 4/down"
    np.testing.assert_array_equal(
        some["log_likelihood"]["y"].sel(label="4/down"), whole[:, :, 4, 1]
    )
    expected = draws.predictive(draws.flat, x).probs[4, 1]
    guesses = some["posterior_predictive"]["y"].sel(label="4/down").values.ravel()
    assert_allclose(np.bincount(guesses, minlength=3) / 4000, expected, atol=0.04)


def test_weighted_draws_are_resampled():
    data = regression()
    mean, covariance, _ = exact(data.train.x, data.train.y)
    wide = draws_of(mean, 4 * covariance, n=5000)
    d = wide.draws - mean
    quadratic = ((d @ torch.linalg.inv(covariance)) * d).sum(2)
    weighted = replace(wide, log_weights=-0.5 * quadratic * (1 - 1 / 4))
    tree = inference_groups(data, weighted, Streams(0))
    assert dict(tree["posterior"].sizes) == {"chain": 1, "draw": 20000}
    assert "sample_stats" not in tree.children
    assert tree["posterior"]["a"].var() == pytest.approx(float(covariance[0, 0]), rel=0.1)


def test_structural_contributions_give_log_likelihood():
    data = problem(missing=(5, TIMES - 1))
    built = model("local_level", "koyck", "dynamic_regression", of=data)
    theta = draw_theta(built, sets=60).view(2, 30, -1)
    contributions = torch.zeros(2, 30, TIMES, len(built.structure.labels), dtype=F64)
    draws = StructuralDraws(
        theta,
        theta[:, 0],
        list(built.structure.names),
        of=built,
        series=data.series,
        contributions=contributions,
    )
    tree = inference_groups(data, draws, Streams(0))
    log_likelihood = tree["log_likelihood"]["y"]
    assert_allclose(
        log_likelihood.sum("time").values.ravel(), draws.log_likelihood(data.series), rtol=1e-9
    )
    n = int(built.design(data.series).seen.sum())
    assert log_likelihood.sizes["time"] == len(tree["observed_data"]["y"]) == n
    assert arviz_stats.loo(tree).n_data_points == n
    student = replace(draws, precisions=0.5 + torch.rand(2, 30, TIMES, dtype=F64))
    of_student = inference_groups(data, student, Streams(0))["log_likelihood"]["y"].sum("time")
    assert_allclose(of_student.values.ravel(), student.log_likelihood(data.series), rtol=1e-9)


def test_many_draws_are_thinned_with_warning(monkeypatch):
    data = regression()
    mean, covariance, _ = exact(data.train.x, data.train.y)
    monkeypatch.setattr(module, "MOST_NUMBERS", 4 * 100 * N)
    with pytest.warns(IncompleteResultWarning, match="every 5th draw, 100 of 500"):
        tree = inference_groups(data, draws_of(mean, covariance), Streams(0))
    assert dict(tree["posterior"].sizes) == {"chain": 4, "draw": 100}
    assert tree["sample_stats"]["lp"].shape == tree["log_likelihood"]["y"].shape[:2] == (4, 100)
    with pytest.warns(IncompleteResultWarning, match="16 draws: .* 25 or more"):
        inference_groups(data, draws_of(mean, covariance, n=4), Streams(0))
    with pytest.raises(ConfigMismatchError, match="no draws are stored yet; take more steps"):
        inference_groups(data, draws_of(mean, covariance, n=0), Streams(0))


class Net(nn.Module):
    """A network of one weight."""

    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        return self.weight * x.unsqueeze(2)

    def output_predictive(self, f):
        return GaussianMixture(f[..., 0], torch.full_like(f[..., 0], SIGMA**2))


def test_networks_are_stored_as_function_values():
    data = regression()
    weights = torch.linspace(-1, 1, 30, dtype=F64)
    tree = inference_groups(data, Networks(tuple(Net(w) for w in weights)), Streams(0))
    assert_allclose(
        tree["posterior"]["f"].values[0], weights[:, None].numpy() * data.train.x[:, 0].numpy()
    )
    last = Normal(data.train.x, SIGMA).log_prob(data.train.y)[:, 0]
    assert_allclose(tree["log_likelihood"]["y"].values[0, -1], last)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert arviz_stats.loo(tree).n_data_points == N


@pytest.mark.parametrize(
    "posterior", [PointEstimate(Net(1.0)), VariationalPosterior(Net(1.0), n_predict=5), object()]
)
def test_posterior_without_draws_is_refused(posterior):
    with pytest.raises(ConfigMismatchError, match="draws of parameters; use a sampler"):
        inference_groups(regression(), posterior, Streams(0))


class Mean:
    """x ~ N(θ, 1)."""

    dim = 1
    names = ["mean"]

    def constrain(self, theta):
        return theta

    def sample_prior(self, n, generator):
        return torch.zeros(n, 1)

    def log_prior(self, theta):
        return theta[:, 0]

    def log_likelihood(self, theta, batch):
        return Normal(theta, 1.0).log_prob(batch.x[:, 0])


def test_unlabelled_rows_are_exported():
    rows = Rows(torch.arange(4, dtype=F64).unsqueeze(1), 1.0)
    data = Unlabelled("rows", "real", rows, rows, None)
    theta = torch.randn(1, 40, 1, dtype=F64)
    tree = inference_groups(data, Draws(theta, theta[:, 0], ["mean"], Mean()), Streams(0))
    literal = norm.logpdf(np.arange(4), theta[0].numpy())
    assert_allclose(tree["log_likelihood"]["x"].values[0], literal)
    assert tree["observed_data"]["x"].values.tolist() == [0, 1, 2, 3]


def test_exact_posterior_exports_its_draws(tmp_path):
    keys = {"dataset": "diabetes", "model": "linear_regression", "inference": "conjugate_bayes"}
    groups = run(**keys, steps=1, output_dir=str(tmp_path), tracking=False).inference_data()
    assert {"log_likelihood", "posterior_predictive", "observed_data"} <= set(groups.children)
    assert "sigma2" in groups["posterior"].data_vars
    assert math.isfinite(arviz_stats.loo(groups).elpd)
