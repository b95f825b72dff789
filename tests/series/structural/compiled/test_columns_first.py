"""Columns drawn with the states integrated out, compared with the dense Gaussian and an enumeration
of all models."""

import inspect
import itertools
import math
from pathlib import Path

import numpy as np
import torch
from scipy import special, stats
from support.runs.configured import component, double, draw_normal
from support.series.structural_series import block, joint, model, problem

from components.maths.compiled import loops
from components.maths.compiled.loops import compiled
from components.series.structural.compiled.simulation_smoother import (
    SystemMotion,
    kept_values,
    state_work,
)
from components.series.structural.compiled.spike_slab import SlabRandomNumbers, slab_work
from components.series.structural.compiled.whitening import draw_columns, white_work, whiten
from runner.execution.rng import Streams

# σ of the observations, of the level and of goodwill; retention of goodwill
THETA = (1.2, 0.5, 0.8, 0.6)


def setup():
    """Sweeps of a level, goodwill of two channels and two regressors with some missing weeks;
    whitened columns."""
    data = problem(missing=(3, 8))
    choice = {"expected_size": 1.0, "information": 3.0}
    built = model(
        "local_level", block("nerlove_arrow", **choice), block("regression", **choice), of=data
    )
    sweeps = (
        component("inference", "structural_gibbs", chains=1).init(built, data, Streams(0)).sweeps
    )
    theta = double([[*THETA, *[0.0] * 4]])
    design = built.design(data.series)
    system = built.system(theta, design)
    X = built.columns(theta, design)
    reference = sweeps.model.system
    y = sweeps.design.y
    scale = np.array(THETA)[sweeps.model.scales.owner]
    values = kept_values(reference, sweeps.structure.transition(theta[:, 3:4]))[0]
    work = white_work(reference, 5)
    Y = torch.cat([X[0], y.view(-1, 1)], 1).numpy()
    whiten(
        Y,
        reference,
        SystemMotion(values, scale, np.full(len(y), THETA[0])),
        state_work(reference),
        work,
    )
    return sweeps, work, system, X


def test_filter_residuals_have_the_dense_likelihood():
    sweeps, work, system, X = setup()
    y = sweeps.design.y
    residuals = torch.from_numpy(work.white)
    is_observed = sweeps.design.seen
    law, _, _ = joint(system, 0)
    some = draw_normal(5, 4, seed=1)
    marginal = -0.5 * (residuals[:, 4] - some @ residuals[:, :4].T).square().sum(1)
    mean = law.mean[is_observed]
    cov = law.covariance_matrix[is_observed][:, is_observed]
    dense = torch.distributions.MultivariateNormal(mean, cov).log_prob(
        y[is_observed] - some @ X[0, is_observed].T
    )
    assert torch.allclose(marginal - marginal[0], dense - dense[0], rtol=1e-9, atol=1e-9)


@compiled()
def _draw_all(white, slab, drawn, gamma, beta, work):
    for c in range(len(gamma)):
        for s in range(len(drawn.u)):
            numbers = SlabRandomNumbers(drawn.u[s, c], drawn.z[s, c])
            draw_columns(white, slab, 1.2, numbers, gamma[c], beta[c], work)


def test_cache_depends_on_the_folders_of_all_called_functions(monkeypatch):
    folders = []
    monkeypatch.setattr(loops, "_cache_folder", folders.append)
    loops._compile.__wrapped__(_draw_all.__wrapped__, False, False, True)
    assert Path(inspect.getfile(draw_columns)).parent in folders[0]


def test_chains_follow_the_law_of_the_enumerated_models():
    """γ and β for given standard deviations after 30 scans, and the first two moments of β."""
    C = 3000
    sweeps, work, system, X = setup()
    is_observed = sweeps.design.seen.numpy()
    sigma = THETA[0]
    law, _, _ = joint(system, 0)
    x = X[0].numpy()[is_observed]
    y = sweeps.design.y.numpy()[is_observed]
    mean = law.mean.numpy()[is_observed]
    cov = law.covariance_matrix.numpy()[np.ix_(is_observed, is_observed)]
    omega = sweeps.model.slab.omega
    models = list(itertools.product([0, 1], repeat=4))
    logs = []
    means = []
    seconds = []
    for chosen in models:
        on = [j for j in range(4) if chosen[j]]
        prior = sigma**2 * np.linalg.inv(omega[np.ix_(on, on)]) if on else np.zeros((0, 0))
        whole = cov + x[:, on] @ prior @ x[:, on].T
        pi = sweeps.structure.inclusion.tolist()
        log_prior = sum(
            math.log(q if inside else 1 - q) for q, inside in zip(pi, chosen, strict=True)
        )
        logs.append(log_prior + stats.multivariate_normal(mean, whole).logpdf(y))
        gain = prior @ x[:, on].T @ np.linalg.inv(whole)
        first = np.zeros(4)
        second = np.zeros(4)
        first[on] = gain @ (y - mean)
        second[on] = first[on] ** 2 + np.diag(prior - gain @ x[:, on] @ prior)
        means.append(first), seconds.append(second)
    weights = np.exp(np.array(logs) - special.logsumexp(logs))
    g = np.random.default_rng(2)
    drawn = SlabRandomNumbers(g.random((30, C, 5)), g.standard_normal((30, C, 4)))
    gamma = g.random((C, 4)) < 0.5
    beta = np.empty((C, 4))
    _draw_all(work, sweeps.model.slab, drawn, gamma, beta, slab_work(4))
    gamma = torch.from_numpy(gamma)
    beta = torch.from_numpy(beta)
    pairs = (gamma.unsqueeze(2) & gamma.unsqueeze(1)).double().flatten(1)
    inside = np.array(models, dtype=float)
    exact = np.einsum("m,mi,mj->ij", weights, inside, inside).ravel()
    assert 0.02 < weights.max() < 0.9  # more than one model is probable
    for estimate, truth in (
        (pairs, exact),
        (beta, weights @ np.array(means)),
        (beta.square(), weights @ np.array(seconds)),
    ):
        z = (estimate.mean(0).numpy() - truth) / (estimate.std(0).numpy() / math.sqrt(C)).clip(1e-6)
        assert abs(z).max() < 4
    assert torch.equal(beta != 0, gamma)
