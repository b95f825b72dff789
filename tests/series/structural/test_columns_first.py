"""Columns drawn with the states summed out: against the dense Gaussian, all models enumerated."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import torch
from scipy import special, stats

from components.series.structural.columns_first import ColumnsFirst, whiten_columns
from runner.execution.rng import Streams
from tests.configured import component
from tests.structural_series import F64, block, joint, model, problem

# σ of the observations, of the level and of goodwill; what goodwill keeps
THETA = (1.2, 0.5, 0.8, 0.6)


def setup(chains):
    """Sweeps of a level, goodwill of two channels and two regressors, missing weeks among them, and
    where chains are."""
    data = problem(missing=(3, 8))
    choice = {"expected_size": 1.0, "information": 3.0}
    built = model(
        "local_level", block("nerlove_arrow", **choice), block("regression", **choice), of=data
    )
    state = component("inference", "structural_gibbs", chains=chains).init(built, data, Streams(0))
    theta = torch.tensor([*THETA, *[0.0] * 4], dtype=F64).expand(chains, -1)
    design = built.design(data.series)
    place = replace(state.place, sigma=theta[:, :3].clone(), phi=theta[:, 3:4].clone())
    system, X = built.system(theta[:1], design), built.columns(theta, design)
    return state.sweeps, place, system, X


def given(sweeps, place):
    return (
        sweeps.structure.transition(place.phi),
        place.sigma[:, sweeps.owner],
        sweeps._noise(place),
    )


def test_what_the_filter_leaves_has_the_likelihood_of_the_dense_gaussian():
    sweeps, place, system, X = setup(1)
    y = sweeps.design.y
    left = whiten_columns(
        sweeps.layout, torch.cat([X, y.view(1, -1, 1)], 2), *given(sweeps, place)
    )[0]
    seen = sweeps.design.seen
    law, _, _ = joint(system, 0)
    some = torch.randn(5, 4, generator=torch.Generator().manual_seed(1), dtype=F64)
    own = -0.5 * (left[:, 4] - some @ left[:, :4].T).square().sum(1)
    mean, cov = law.mean[seen], law.covariance_matrix[seen][:, seen]
    dense = torch.distributions.MultivariateNormal(mean, cov).log_prob(
        y[seen] - some @ X[0, seen].T
    )
    assert torch.allclose(own - own[0], dense - dense[0], rtol=1e-9, atol=1e-9)


def test_chains_have_the_law_of_the_enumerated_models():
    """γ and β of given standard deviations after 30 scans, and β's two first moments."""
    C = 3000
    sweeps, place, system, X = setup(C)
    seen, sigma = sweeps.design.seen.numpy(), THETA[0]
    law, _, _ = joint(system, 0)
    x, y, mean = X[0].numpy()[seen], sweeps.design.y.numpy()[seen], law.mean.numpy()[seen]
    cov, omega = law.covariance_matrix.numpy()[np.ix_(seen, seen)], sweeps.slab.precision.numpy()
    models, logs, means, seconds = list(itertools.product([0, 1], repeat=4)), [], [], []
    for chosen in models:
        on = [j for j in range(4) if chosen[j]]
        prior = sigma**2 * np.linalg.inv(omega[np.ix_(on, on)]) if on else np.zeros((0, 0))
        whole = cov + x[:, on] @ prior @ x[:, on].T
        pi = sweeps.slab.inclusion.tolist()
        log_prior = sum(
            math.log(q if inside else 1 - q) for q, inside in zip(pi, chosen, strict=True)
        )
        logs.append(log_prior + stats.multivariate_normal(mean, whole).logpdf(y))
        gain = prior @ x[:, on].T @ np.linalg.inv(whole)
        first, second = np.zeros(4), np.zeros(4)
        first[on] = gain @ (y - mean)
        second[on] = first[on] ** 2 + np.diag(prior - gain @ x[:, on] @ prior)
        means.append(first), seconds.append(second)
    weights = np.exp(np.array(logs) - special.logsumexp(logs))
    gamma, g = place.gamma, torch.Generator().manual_seed(2)
    for _ in range(30):
        first = ColumnsFirst(sweeps.slab, sweeps.layout)
        known = (sweeps.design.y, X, *given(sweeps, place), place.sigma[:, 0])
        gamma, beta = first.draw(*known, gamma, first.numbers(C, g))
    pairs = (gamma.unsqueeze(2) & gamma.unsqueeze(1)).double().flatten(1)
    inside = np.array(models, dtype=float)
    exact = np.einsum("m,mi,mj->ij", weights, inside, inside).ravel()
    assert 0.02 < weights.max() < 0.9  # there is a choice
    for found, truth in (
        (pairs, exact),
        (beta, weights @ np.array(means)),
        (beta.square(), weights @ np.array(seconds)),
    ):
        z = (found.mean(0).numpy() - truth) / (found.std(0).numpy() / math.sqrt(C)).clip(1e-6)
        assert abs(z).max() < 4
    assert torch.equal(beta != 0, gamma)
