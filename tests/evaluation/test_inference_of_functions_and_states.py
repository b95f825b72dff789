"""InferenceData of Gaussian processes, filters and densities, compared with exact values."""

import math

import arviz_stats
import numpy as np
import pytest
import torch
import yaml
from numpy.testing import assert_allclose
from support.runs.configured import F64, double, generator
from support.small.shallow_gp_problems import problem, scatter_parameters, streams

from components.contracts.predictive import Categorical, GaussianMixture
from components.errors import ConfigMismatchError
from components.evaluation import inference_states
from components.evaluation.inference_groups import inference_groups
from components.models.deep_gp.likelihoods import (
    BernoulliLabels,
    GaussianLabels,
    SoftmaxLabels,
    predictive_at_draws,
)
from components.posteriors.draws import Draws
from components.posteriors.variational import VariationalPosterior
from components.problems.density import Density
from components.registry import get
from components.series.posteriors.smoothed import SmoothedSeries
from components.series.sequence import Sequence
from runner import CONF
from runner.execution.rng import Streams


def build_model(name, data, **changes):
    values = yaml.safe_load((CONF / "model" / f"{name}.yaml").read_text()) | changes
    return get("model", name)(**values).build(data, streams())


def test_exact_gp_loo_matches_closed_form():
    """log p(y_i | the others) = log N(y_i | y_i − α_i/P_ii, 1/P_ii), P = (K + Σ)⁻¹, α = P y:
    Rasmussen and Williams (2006), eqs. (5.10) to (5.12)."""
    data = problem(n=40, keep=0.6)
    gp = build_model("cgp", data, lengthscale=2.0, variance=1.0, noise_variance=1.0)
    tree = inference_groups(data, VariationalPosterior(gp, n_predict=5), Streams(0))
    K, noise, r = (part.detach()[0] for part in gp._system(gp.labels))
    P = torch.linalg.inv(K + torch.diag(noise + gp.jitter))
    alpha = P @ r
    v = 1 / P.diagonal()
    left_out = -0.5 * (math.log(2 * math.pi) + v.log() + (alpha * v).square() / v)
    loo_result = arviz_stats.loo(tree, pointwise=True)
    assert float(loo_result.elpd) == pytest.approx(float(left_out.sum()), abs=0.5)
    by_label = dict(
        zip(
            tree["log_likelihood"]["y"].coords["label"].values,
            loo_result.elpd_i.values,
            strict=True,
        )
    )
    names = [
        f"{row}/{data.task_names[t]}"
        for t in range(3)
        for row in data.train.mask[:, t].nonzero()[:, 0].tolist()
    ]
    assert_allclose([by_label[name] for name in names], left_out, atol=0.15)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("igp", {}),
        ("igp", {"posterior": "sparse"}),
        ("cgp", {}),
        ("cgp", {"posterior": "sparse"}),
        ("mmdgp", {}),
        ("smdgp", {}),
        ("cmdgp", {}),
        ("idgp", {}),
        ("gpytorch_gp", {}),
        *(
            pytest.param("collapsed_mdgp", {"top": top}, marks=pytest.mark.slow)
            for top in ("independent", "coregionalised")
        ),
    ],
)
def test_function_draws_match_predictive_moments(name, changes):
    """E f and Var f + σ² of p(y | f) are the mean and the variance of p(y)."""
    data = problem(n=25)
    module = build_model(
        name, data, **changes, **({"n_inducing": 8} if name != "gpytorch_gp" else {})
    )
    scatter_parameters(module, scale=0.05)
    x = data.test.x
    with torch.no_grad():
        given = module.predict_f(x, 4_000, generator())
        whole = module.sample_predictive(x, 4_000, generator(1))
    assert isinstance(given, GaussianMixture)
    assert len(given.mu) == 4_000
    assert float(given.v.amax() - given.v.flatten(0, 1).amin(0).max()) >= 0
    assert torch.equal(given.v[0, 0], given.v[-1, -1]), (
        "only the noise, which is the same everywhere"
    )
    sd = whole.variance.sqrt()
    warps = 20 if name == "collapsed_mdgp" else 4_000
    assert ((given.mean - whole.mean).abs() < 6 * sd / math.sqrt(warps)).all()
    torch.testing.assert_close(
        given.variance, whole.variance, rtol=0.6 if warps == 20 else 0.15, atol=1e-6
    )


def test_class_predictives_match_probit_integral():
    # [1, T, B, C]
    mean = double([[[[0.4]]]])
    variance = double([[[[0.3]]]])
    binary = BernoulliLabels("probit", 20, mean)
    given = predictive_at_draws(binary, mean, variance, 20_000, generator())
    assert isinstance(given, Categorical)
    literal = torch.special.ndtr(mean / (1 + variance).sqrt())  # E Φ(f)
    assert float(given.probs[0, 0, 1]) == pytest.approx(float(literal), abs=0.01)
    classes = predictive_at_draws(
        SoftmaxLabels(2),
        torch.zeros(1, 1, 1, 2, dtype=F64),
        torch.ones(1, 1, 1, 2, dtype=F64),
        50,
        generator(),
    )
    assert isinstance(classes, Categorical)
    assert classes.logits.shape == (50, 1, 1, 2)
    assert 0.5 < classes.logits.std() < 1.5
    # Two components with weight ½: moments [2, T, B, 1]
    two = predictive_at_draws(
        GaussianLabels(1, 0.1, mean),
        double([-5.0, 5.0]).view(2, 1, 1, 1),
        torch.zeros(2, 1, 1, 1, dtype=F64),
        10,
        torch.Generator(),
    )
    assert isinstance(two, GaussianMixture)
    assert two.mu.flatten().tolist() == [-5, 5] * 5


def test_state_draws_match_means_and_variances(monkeypatch):
    monkeypatch.setattr(inference_states, "DRAWS", 20_000)
    y = torch.arange(50, dtype=F64).view(1, 50, 1).clone()
    y[0, 7] = math.nan
    data = Sequence("walk", None, y, None, ["level"])
    mean = y.nan_to_num().sqrt()
    variance = 1 + y.nan_to_num()
    states = SmoothedSeries(mean, variance, mean, mean)
    tree = inference_groups(data, states, Streams(0))
    assert set(tree.children) == {"posterior", "observed_data"}
    x = tree["posterior"]["x"]
    assert x.dims == ("chain", "draw", "time", "state")
    assert x.shape == (1, 20_000, 50, 1)
    assert x.coords["state"].values.tolist() == ["level"]
    assert_allclose(x.mean(("chain", "draw")), mean[0], atol=0.2)
    assert_allclose(x.var(("chain", "draw")), variance[0], rtol=0.1)
    observed_rows = tree["observed_data"]["y"].coords["seen"].values.tolist()
    assert observed_rows == [t for t in range(1, 51) if t != 8]
    np.testing.assert_array_equal(
        tree["observed_data"]["y"].values, y[0, [t - 1 for t in observed_rows], 0]
    )
    with pytest.raises(ConfigMismatchError, match=r"no time step .*; take more steps"):
        inference_groups(data, SmoothedSeries.empty_smoothed(mean), Streams(0))


class Normal:
    dim = 2
    names = ["x[0]", "x[1]"]

    def constrain(self, theta):
        return theta


def test_density_draws_are_exported():
    theta = torch.randn(2, 10, 2, dtype=F64)
    data = Density(
        "normal",
        ["x[0]", "x[1]"],
        lambda t: t[:, 0],
        lambda n, g: torch.zeros(n, 2),
        None,
        None,
        [],
    )
    draws = Draws(theta, theta[:, 0], ["x[0]", "x[1]"], Normal(), stats={"lp": theta.sum(2)})
    tree = inference_groups(data, draws, Streams(0))
    assert set(tree.children) == {"posterior", "sample_stats"}
    np.testing.assert_array_equal(tree["posterior"]["x"].values, theta)
