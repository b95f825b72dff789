"""log p(x) of held-out rows: exact for probabilistic PCA, unbiased for any guide and schedule, and
independent of the training method."""

import math

import pytest
import torch
from support.runs.configured import F64, component, double, generator, load, normal
from support.small.unlabelled_problems import evidence_z, log_evidence, ppca, real_rows, target_rows
from torch.testing import assert_close

from components.contracts.problems import Rows
from components.errors import ConfigMismatchError
from components.metrics.evidence import proposal
from components.metrics.evidence.held_out import LatentEvidence
from components.metrics.unlabelled.likelihood_bounds import log_mean_exp
from components.posteriors.latent import LatentPosterior
from components.problems.unlabelled import Unlabelled
from runner.execution.rng import Streams

N = 25


@pytest.fixture
def problem():
    return real_rows(n=N)


def test_fit_to_a_normal_posterior_is_that_posterior(problem):
    module, exact = (ppca(problem, exact_guide=kind) for kind in (False, True))
    with torch.no_grad():
        m, s = exact.encode(problem.test)
        far = m + 3.0
    mean, factor = proposal.fit(target_rows(module, problem.test), far)
    assert_close(mean, m, rtol=0, atol=1e-8)
    assert_close(factor @ factor.mT, s.square().diag_embed(), rtol=1e-8, atol=1e-10)


def test_curvatures_are_at_least_those_of_the_prior():
    hessian = torch.diag(double([-4.0, 0.5, -0.2]))[None]
    curvature, directions = proposal.bent(hessian)
    assert_close(
        directions @ (curvature[..., None] * directions.mT),
        torch.diag(torch.tensor([4.0, 1, 1]).double())[None],
    )


def test_fit_increases_the_bound_of_a_nonnormal_target():
    module = component("model", "vae", latent_dim=3, widths=[8]).build(binary(), Streams(1))
    rows = binary().test
    start = torch.zeros(N, 3, dtype=F64)
    target = target_rows(module, rows)
    with torch.no_grad():
        for p in module.generative.network.parameters():
            p.mul_(4)
    mean, factor = proposal.fit(target, start)
    assert (target(mean[None]) >= target(start[None])).all()
    assert (torch.linalg.svdvals(factor) <= 1 + 1e-9).all()


def binary():
    problem = real_rows(n=N)
    train, test = (Rows((rows.x > 0.5).double(), 1.0) for rows in (problem.train, problem.test))
    return Unlabelled("b", "binary", train, test, None)


def test_row_gaussians_equal_torch():
    g = generator()
    factor = normal(g, 5, 3, 3) + 2 * torch.eye(3)
    mean = torch.randn(5, 3, generator=g).double()
    z = torch.randn(7, 5, 3, generator=g).double()
    law = torch.distributions.MultivariateNormal(mean, factor @ factor.mT)
    assert_close(proposal.RowGaussians(mean, factor).log_prob(z), law.log_prob(z))
    noise = normal(g, 100_000, 1, 3)
    draws = proposal.RowGaussians(mean[:1], factor[:1]).apply_noise(noise)[:, 0]
    assert_close(draws.T.cov(), (factor @ factor.mT)[0], rtol=0.03, atol=0.05)


@pytest.mark.parametrize("samples", [1, 7])
def test_importance_weights_are_unbiased_for_a_wrong_guide(problem, samples):
    module = ppca(problem, exact_guide=False)
    exact = log_evidence(module, problem.test.x)
    rng = Streams(0)
    with torch.no_grad():
        m, s = module.encode(problem.test)
    m = m + 0.5
    s = 0.6 * s
    many = Rows(problem.test.x.repeat(400, 1), 1.0)
    w = proposal.log_weights(
        target_rows(module, many), m.repeat(400, 1), s.repeat(400, 1), samples, rng.noise
    )
    means = log_mean_exp(w).view(400, N)  # from S weights, with exact shares
    assert abs(evidence_z(means, exact)) < 4


def test_log_weights_equal_a_literal_sum(problem):
    module = ppca(problem, exact_guide=False)
    target = target_rows(module, problem.test)
    with torch.no_grad():
        m, s = module.encode(problem.test)
    w = proposal.log_weights(target, m, s, 40, Streams(3).noise)
    normal = torch.distributions.MultivariateNormal
    counts = [28, 10, 2]
    parts = proposal.components(target, m, s)
    laws = [normal(part.mean, part.factor @ part.factor.mT) for part in parts]
    assert_close(laws[1].covariance_matrix, (1.44 * s.square()).diag_embed())
    assert_close(
        laws[2].log_prob(m), normal(torch.zeros(2).double(), torch.eye(2).double()).log_prob(m)
    )
    noise = torch.randn(40, N, 2, generator=Streams(3).noise, dtype=F64)
    parts_and_noise = zip(parts, noise.split(counts), strict=True)
    z = torch.cat([part.apply_noise(some) for part, some in parts_and_noise])
    q = sum(n / 40 * law.log_prob(z).exp() for n, law in zip(counts, laws, strict=True))
    assert_close(w, module.log_joint(problem.test, z) - q.log(), rtol=1e-8, atol=1e-8)


def score_module(problem, module, **keys):
    defaults = {"proposal": "laplace", "ais_temperatures": 0, "ais_chains": 16, "ais_rows": 7}
    problem.evidence = LatentEvidence(importance_samples=200, **(defaults | keys))
    problem.importance_samples = 200
    problem.evaluation_chunk = 10
    return problem.score(LatentPosterior(module), Streams(0))


def test_scores_are_independent_of_the_guide(problem):
    exact_guide, wrong_guide = (ppca(problem, exact_guide=kind) for kind in (True, False))
    exact = -float(log_evidence(exact_guide, problem.test.x).mean())
    good = score_module(problem, exact_guide)
    bad = score_module(problem, wrong_guide)
    assert good["nelbo"] == pytest.approx(exact, abs=1e-8)
    assert bad["nelbo"] > exact + 0.05
    for scores in (good, bad):
        assert scores["nll_bound"] == pytest.approx(exact, abs=0.02)
        assert scores["weight_ess"] > 60
        assert scores["pareto_k"] < 0.7
    by_guide = score_module(problem, wrong_guide, proposal="guide")
    assert by_guide.keys() == {"nelbo", "nll_bound"}
    problem.evidence = None
    assert problem.score(LatentPosterior(wrong_guide), Streams(0)) == by_guide, (
        "as before there was a choice"
    )


def test_annealing_uses_and_compares_the_first_rows(problem):
    module = ppca(problem, exact_guide=False)
    keys = {"ais_temperatures": 40, "ais_chains": 64, "ais_rows": 13}
    scores = score_module(problem, module, **keys)
    exact = log_evidence(module, problem.test.x)[:13]
    assert scores["nll_ais"] == pytest.approx(-float(exact.mean()), abs=0.08)
    assert scores["ais_gain"] == pytest.approx(0, abs=0.08)
    alone = score_module(problem, module, proposal="guide", **keys)
    assert alone["nll_ais"] == scores["nll_ais"]
    assert "ais_gain" not in alone


def test_model_without_a_guide_of_rows_is_refused(problem):
    class Known:
        def row_log_weights(self, batch, n_samples, generator):
            return torch.zeros(1, batch.n_rows)

    problem.evidence = LatentEvidence("laplace", 10, 0, 1, 1)
    with pytest.raises(ConfigMismatchError, match=r"dataset\.proposal=guide"):
        problem.score(Known(), Streams(0))


@pytest.mark.parametrize("value", [-0.1, 1.2, math.nan])
def test_intensities_outside_0_and_1_are_refused(value):
    good = torch.tensor([[0.0, 0.5], [1.0, 1.0]])
    Unlabelled("b", "binary", Rows(good, 1.0), Rows(good, 1.0), None)
    bad = good.clone()
    bad[0, 1] = value
    with pytest.raises(ConfigMismatchError, match=r"\[0, 1\]"):
        Unlabelled("b", "binary", Rows(bad, 1.0), Rows(good, 1.0), None)
    Unlabelled("r", "real", Rows(bad, 1.0), Rows(good, 1.0), None)


def test_autoencoder_of_binarised_digits_is_scored():
    keys = {"n_train": 60, "n_test": 6, "proposal": "laplace", "ais_temperatures": 5}
    problem, rng = load("images", binarised="static", **keys)
    keys = {"latent_dim": 2, "widths": [8], "guide": "separate", "scale": "softplus"}
    module = component("model", "vae", **keys).build(problem, rng)
    scores = problem.score(LatentPosterior(module), rng)
    names = "nelbo nll_bound weight_ess pareto_k nll_ais ais_acceptance ais_gain"
    assert scores.keys() == {*names.split()}
    assert all(math.isfinite(v) for v in scores.values())
