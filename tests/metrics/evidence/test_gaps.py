"""Amortisation and approximation gaps of a linear auto-encoder with exactly known values."""

import pytest
import torch
from support.runs.configured import component, generator, load
from support.small.unlabelled_problems import exact_elbo, log_evidence, ppca, real_rows
from torch.testing import assert_close

from components.metrics.evidence.best_q import fit_q
from components.metrics.evidence.held_out import LatentEvidence
from components.posteriors.latent import LatentPosterior
from runner.execution.rng import Streams


def skewed_guide(problem):
    """A guide far from p(z|x), with correlated components: Λ = I + Wᵀ W/σ²."""
    module = ppca(problem, exact_guide=False)
    (up,) = module.generative.network.layers
    with torch.no_grad():
        up.weight.copy_(up.weight @ torch.tensor([[1.0, 0.6], [0.0, 0.8]]).double())
        W = up.weight
        noise = module.generative.log_noise.exp()
        precision = torch.eye(2).double() + W.T @ W / noise
    return module, precision


def test_gaps_of_a_linear_autoencoder_are_exact():
    problem = real_rows(n=20)
    module, precision = skewed_guide(problem)
    posterior = LatentPosterior(module)
    scores_before = problem.score(posterior, Streams(0))
    problem.evidence = LatentEvidence("guide", 300, 0, 1, 20, best_q_steps=200)
    scores = problem.score(posterior, Streams(0))
    x = problem.test.x
    # the best diagonal q has precisions Λ_dd: KL = ½ (Σ log Λ_dd − log|Λ|)
    approximation = 0.5 * float(precision.diagonal().log().sum() - torch.logdet(precision))
    evidence = log_evidence(module, x).mean()
    learnt = exact_elbo(module, x) / 20
    amortisation = float((evidence - learnt).detach()) - approximation
    assert scores["approximation_gap"] == pytest.approx(approximation, abs=0.08)
    assert scores["amortisation_gap"] == pytest.approx(amortisation, abs=0.08)
    assert approximation > 0.1
    assert amortisation > 0.1
    # other scores do not change
    assert {key: scores[key] for key in scores_before} == scores_before


def test_best_q_is_the_mean_field_optimum():
    problem = real_rows(n=20)
    module, precision = skewed_guide(problem)
    rows = problem.test
    with torch.no_grad():
        m, s = module.encode(rows)
    found_m, found_s = fit_q(lambda z: module.log_joint(rows, z), m, s, 200, generator(0))
    (up,) = module.generative.network.layers
    pull = (rows.x - up.bias) @ up.weight / module.generative.log_noise.exp()
    exact = torch.linalg.solve(precision, pull.detach().T).T
    assert_close(found_m, exact, atol=0.04, rtol=0)
    assert_close(found_s, precision.diagonal().rsqrt().expand_as(found_s), atol=0.04, rtol=0)


def test_gaps_of_an_autoencoder_of_digits_are_scored():
    problem, rng = load(
        "images", binarised="static", n_train=60, n_test=6, best_q_steps=30, importance_samples=30
    )
    module = component("model", "vae", latent_dim=2, widths=[8]).build(problem, rng)
    scores = problem.score(LatentPosterior(module), rng)
    assert scores["amortisation_gap"] > 0  # a random guide
    assert scores.keys() == {"nelbo", "nll_bound", "amortisation_gap", "approximation_gap"}
