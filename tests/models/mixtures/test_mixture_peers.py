"""Fits of a mixture of Gaussians and the adjusted Rand index, compared with scikit-learn."""

import warnings

import pytest
import torch
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from support.runs.configured import double, generator, load
from support.targets.mean_field_families import build_model, fit_factors
from torch.testing import assert_close

from components.metrics.unlabelled.clusters import adjusted_rand


def separated_clusters():
    problem, _ = load("mixture_sim", n_train=120, n_test=50, spread=4.0)
    return problem, problem.train.x.numpy()


def test_mean_field_equals_scikit_learn():
    problem, x = separated_clusters()
    model = build_model("gaussian_mixture", problem, concentration=0.7, mean_rows=0.3)
    p = model.prior
    ascent = model.mean_field()
    factors = fit_factors(ascent, problem.train, 300, starts=4)
    best = int(ascent.objective(factors, problem.train).argmax())
    theirs = BayesianGaussianMixture(
        n_components=3,
        weight_concentration_prior_type="dirichlet_distribution",
        weight_concentration_prior=0.7,
        mean_precision_prior=0.3,
        mean_prior=p.m.numpy(),
        degrees_of_freedom_prior=float(p.nu),
        covariance_prior=p.V.numpy(),
        reg_covar=0,
        tol=1e-12,
        max_iter=1000,
        random_state=0,
    ).fit(x)
    a = factors["m"][best, :, 0].argsort()
    b = theirs.means_[:, 0].argsort()
    ours = {name: value[best][a] for name, value in factors.items()}
    r = ascent.responsibilities(factors, problem.test)[best][:, a]
    peers = (
        theirs.means_[b],
        theirs.weight_concentration_[b],
        theirs.degrees_of_freedom_[b],
        theirs.covariances_[b],
        theirs.predict_proba(problem.test.x.numpy())[:, b],
    )
    covariance = ours["V"] / ours["nu"][:, None, None]
    assert_close(
        (ours["m"], ours["alpha"], ours["nu"], covariance, r),
        tuple(map(torch.from_numpy, peers)),
        rtol=0,
        atol=1e-5,
    )


@pytest.mark.parametrize("cycles", [1, 7])
def test_em_equals_scikit_learn_from_one_start(cycles):
    problem, x = separated_clusters()
    ascent = build_model("gaussian_mixture", problem).point_masses(False)
    start = ascent.start(problem.train, 1, generator(0))
    ours = fit_factors(ascent, problem.train, cycles)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations do not converge
        theirs = GaussianMixture(
            n_components=3,
            reg_covar=0,
            tol=0,
            max_iter=cycles,
            weights_init=start["log_pi"][0].exp().numpy(),
            means_init=start["mu"][0].numpy(),
            precisions_init=torch.linalg.inv(start["covariance"][0]).numpy(),
        ).fit(x)
    log_likelihood = ascent.objective(ours, problem.train)[0]
    peers = (theirs.means_, theirs.weights_, theirs.covariances_, 120 * theirs.score(x))
    assert_close(
        (ours["mu"][0], ours["log_pi"][0].exp(), ours["covariance"][0], log_likelihood),
        tuple(map(double, peers)),
        rtol=1e-9,
        atol=1e-9,
    )


def test_rand_index_equals_scikit_learn():
    g = generator(0)
    first = torch.randint(4, (50,), generator=g)
    other = torch.randint(3, (50,), generator=g)
    other[:25] = first[:25] % 3
    assert_close(adjusted_rand(first, other), adjusted_rand_score(first.numpy(), other.numpy()))
    assert adjusted_rand(first, (first + 1) % 4) == 1.0
    assert adjusted_rand(torch.zeros(5, dtype=torch.long), torch.zeros(5, dtype=torch.long)) == 1.0
