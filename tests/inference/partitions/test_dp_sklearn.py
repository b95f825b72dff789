"""A Dirichlet process mixture fitted by scikit-learn: the inputs of the library, and the density
computed from its results."""

import pytest
import torch
from sklearn.mixture import BayesianGaussianMixture
from support.runs.configured import component, load
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from components.contracts.problems import Rows
from runner.execution.rng import Streams


@pytest.mark.parametrize("prior", ["model", "library"])
def test_fit_matches_library_and_density_is_normal_mixture(prior):
    problem, _ = load("mixture_sim", n_train=60, n_test=20)
    model = component("model", "dp_mixture", concentration=0.7).build(problem, Streams(0))
    inference = component("inference", "dp_sklearn", prior=prior, truncation=6, starts=2, cycles=50)
    rng = Streams(0)
    state, info = inference.step(inference.init(model, problem, rng), problem.train, rng)
    assert inference.step(state, problem.train, rng) == (state, {}), (
        "a further step changes nothing"
    )
    m = model.prior
    keys = {}
    if prior == "model":
        keys = {
            "mean_prior": m.m,
            "mean_precision_prior": float(m.beta),
            "degrees_of_freedom_prior": float(m.nu),
            "covariance_prior": m.V.numpy(),
        }
    seed = int(torch.randint(2**31, (), generator=Streams(0).init))
    x = problem.train.x.flatten(1).double().numpy()
    theirs = BayesianGaussianMixture(
        n_components=6,
        n_init=2,
        max_iter=50,
        weight_concentration_prior=0.7,
        random_state=seed,
        **keys,
    ).fit(x)
    assert info["cycles"] == theirs.n_iter_
    posterior = inference.posterior(state)
    rows = problem.test
    assert isinstance(rows, Rows)
    means = torch.from_numpy(theirs.means_)
    covariances = torch.from_numpy(theirs.covariances_)
    each = MultivariateNormal(means, covariances).log_prob(rows.x.flatten(1).double()[:, None])
    literal = each + torch.from_numpy(theirs.weights_).log()
    assert_close(posterior.log_predictive(rows).double(), literal.logsumexp(1))
    assert_close(posterior.clusters(rows).double(), literal.softmax(1))
