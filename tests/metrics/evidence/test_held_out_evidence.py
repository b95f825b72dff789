"""log p(x) of held-out rows: exact on probabilistic PCA, unbiased for any guide and schedule, blind
to what trained it."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from support.runs.configured import F64, component, load
from support.small.unlabelled_problems import log_evidence, ppca, real_rows
from torch.testing import assert_close

from components.contracts.problems import Rows
from components.errors import ConfigMismatchError
from components.maths.row_hamiltonian import transition
from components.metrics.evidence import annealed, proposal
from components.metrics.evidence.held_out import LatentEvidence
from components.metrics.unlabelled.likelihood_bounds import log_mean_exp
from components.posteriors.latent import LatentPosterior
from components.problems.unlabelled import Unlabelled
from runner.execution.rng import Streams

N = 25


@pytest.fixture
def problem() -> Unlabelled:
    return real_rows(n=N)


def target_of(module, rows):
    return lambda z: module.log_joint(rows, z)


def z_of(log_w, exact) -> float:
    """How many standard errors the mean of exp(log w)/p(x) over all draws and rows is from 1."""
    ratio = (log_w - exact).exp().mean(1)  # rows share nothing: one number a draw
    return float((ratio.mean() - 1) / (ratio.std() / len(ratio) ** 0.5))


# ---- importance sampling
# -----------------------------------------------------------------------------------------------
def test_the_fit_of_a_normal_posterior_is_that_posterior(problem):
    module, exact = (ppca(problem, exact_guide=kind) for kind in (False, True))
    with torch.no_grad():
        m, s = exact.encode(problem.test)
        far = m + 3.0
    mean, factor = proposal.fit(target_of(module, problem.test), far)
    assert_close(mean, m, rtol=0, atol=1e-8)
    assert_close(factor @ factor.mT, s.square().diag_embed(), rtol=1e-8, atol=1e-10)


def test_curvatures_are_no_less_than_those_of_the_prior():
    hessian = torch.diag(torch.tensor([-4.0, 0.5, -0.2], dtype=F64))[None]
    curvature, directions = proposal.bent(hessian)
    assert_close(
        directions @ (curvature[..., None] * directions.mT),
        torch.diag(torch.tensor([4.0, 1, 1]).double())[None],
    )


def test_a_fit_climbs_a_target_that_is_not_normal():
    module = component("model", "vae", latent_dim=3, widths=[8]).build(binary(), Streams(1))
    rows, start = binary().test, torch.zeros(N, 3, dtype=F64)
    target = target_of(module, rows)
    with torch.no_grad():
        for p in module.generative.network.parameters():
            p.mul_(4)
    mean, factor = proposal.fit(target, start)
    assert (target(mean[None]) >= target(start[None])).all()
    assert (torch.linalg.svdvals(factor) <= 1 + 1e-9).all()


def binary() -> Unlabelled:
    problem = real_rows(n=N)
    return Unlabelled(
        "b",
        "binary",
        *(Rows((r.x > 0.5).double(), 1.0) for r in (problem.train, problem.test)),
        None,
    )


def test_row_gaussians_are_those_of_torch():
    g = torch.Generator().manual_seed(0)
    factor = torch.randn(5, 3, 3, generator=g, dtype=F64) + 2 * torch.eye(3)
    mean, z = torch.randn(5, 3, generator=g).double(), torch.randn(7, 5, 3, generator=g).double()
    law = torch.distributions.MultivariateNormal(mean, factor @ factor.mT)
    assert_close(proposal.RowGaussians(mean, factor).log_prob(z), law.log_prob(z))
    noise = torch.randn(100_000, 1, 3, generator=g, dtype=F64)
    moved = proposal.RowGaussians(mean[:1], factor[:1]).apply_noise(noise)[:, 0]
    assert_close(moved.T.cov(), (factor @ factor.mT)[0], rtol=0.03, atol=0.05)


@pytest.mark.parametrize("samples", [1, 7])
def test_importance_weights_are_unbiased_for_few_samples_of_a_wrong_guide(problem, samples):
    module = ppca(problem, exact_guide=False)
    exact, rng = log_evidence(module, problem.test.x), Streams(0)
    with torch.no_grad():
        m, s = module.encode(problem.test)
    m, s = m + 0.5, 0.6 * s
    many = Rows(problem.test.x.repeat(400, 1), 1.0)
    w = proposal.log_weights(
        target_of(module, many), m.repeat(400, 1), s.repeat(400, 1), samples, rng.noise
    )
    means = log_mean_exp(w).view(400, N)  # of S weights, shares drawn exactly
    assert abs(z_of(means, exact)) < 4


def test_log_weights_are_a_literal_sum(problem):
    module = ppca(problem, exact_guide=False)
    target = target_of(module, problem.test)
    with torch.no_grad():
        m, s = module.encode(problem.test)
    w = proposal.log_weights(target, m, s, 40, Streams(3).noise)
    normal = torch.distributions.MultivariateNormal
    counts, parts = [28, 10, 2], proposal.components(target, m, s)
    laws = [normal(part.mean, part.factor @ part.factor.mT) for part in parts]
    assert_close(laws[1].covariance_matrix, (1.44 * s.square()).diag_embed())
    assert_close(
        laws[2].log_prob(m), normal(torch.zeros(2).double(), torch.eye(2).double()).log_prob(m)
    )
    noise = torch.randn(40, N, 2, generator=Streams(3).noise, dtype=F64)
    own = zip(parts, noise.split(counts), strict=True)
    z = torch.cat([part.apply_noise(some) for part, some in own])
    q = sum(n / 40 * law.log_prob(z).exp() for n, law in zip(counts, laws, strict=True))
    assert_close(w, module.log_joint(problem.test, z) - q.log(), rtol=1e-8, atol=1e-8)


# ---- annealed importance sampling
# ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("temperatures", [1, 2, 7])
def test_the_schedule_goes_from_prior_to_posterior(temperatures):
    betas = annealed.schedule(temperatures)
    assert (betas[0], betas[-1], len(betas)) == (0.0, 1.0, temperatures + 1)
    assert sorted(betas) == betas
    raw = [1 / (1 + math.exp(-4 * (2 * t / temperatures - 1))) for t in range(temperatures + 1)]
    assert betas == pytest.approx([(r - raw[0]) / (raw[-1] - raw[0]) for r in raw])


@pytest.mark.parametrize("temperatures", [1, 3, 8])
def test_annealed_weights_are_unbiased_whatever_the_schedule(temperatures):
    """Few temperatures, rows near the centre, so that weights are bounded: the mean of ŵ must be
    p(x) all the same."""
    few = real_rows(n=4)
    module = ppca(few, exact_guide=True)
    (up,) = module.generative.network.layers
    noise = torch.randn(4, 4, generator=torch.Generator().manual_seed(1), dtype=F64)
    rows = Rows(up.bias.detach() + 0.5 * noise, 1.0)
    exact = log_evidence(module, rows.x)
    like = torch.zeros(4, 2, dtype=F64)
    w, _ = annealed.annealed_log_weights(
        target_of(module, rows), like, temperatures, 4_000, Streams(0).noise
    )
    assert (w - exact).exp().std() > 0.15, "a test of something"
    assert abs(z_of(w, exact)) < 4


def test_step_sizes_of_the_run_that_counts_were_learnt_before_it(problem):
    """They depend on nothing that it draws: given them and its noise, the weights are those of one
    run of fixed steps."""
    target, like = (
        target_of(ppca(problem, exact_guide=True), problem.test),
        torch.zeros(N, 2, dtype=F64),
    )
    g, betas = Streams(0).noise, annealed.schedule(5)
    _, sizes, rates = annealed.anneal(target, like, 2, betas, None, g)
    for t in range(4):
        up = torch.where(rates[t] > 0.65, 1.05, 1 / 1.05)
        assert_close(sizes[t + 1], sizes[t] * up.double())
    w, used, _ = annealed.anneal(target, like, 8, betas, sizes, g)
    assert torch.equal(used, sizes)
    assert torch.equal(annealed.annealed_log_weights(target, like, 5, 8, Streams(0).noise)[0], w)


def test_many_temperatures_find_the_likelihood(problem):
    module = ppca(problem, exact_guide=False)
    exact = log_evidence(module, problem.test.x)
    w, rate = annealed.annealed_log_weights(
        target_of(module, problem.test),
        torch.zeros(N, 2, dtype=F64),
        60,
        200,
        Streams(0).noise,
    )
    assert_close(log_mean_exp(w), exact, rtol=0, atol=0.15)
    assert (log_mean_exp(w) - exact).mean().abs() < 0.04
    assert rate.mean() > 0.5


def test_a_transition_leaves_its_target_in_place():
    """Draws of N(0, (β/v + 1 − β)⁻¹) stay draws of it, with steps so coarse that a third is
    refused."""
    v, beta = 0.2, 0.4

    def target(z):
        return -0.5 * (z.square().sum(-1) / v)

    sd = (beta / v + (1 - beta)) ** -0.5
    g = Streams(0).noise
    z = sd * torch.randn(200_000, 1, 1, generator=g, dtype=F64)
    eps = torch.full((1,), 1.7 * sd, dtype=F64)
    for _ in range(3):
        z, there, rate = transition(
            partial(annealed.annealed_log_density, target, beta), z, eps[:, None], 10, g
        )
    assert_close(there, target(z))
    assert rate.mean() < 0.9
    assert z.mean() == pytest.approx(0, abs=4 * sd / 200_000**0.5)
    assert z.var() == pytest.approx(sd**2, rel=4 * (2 / 200_000) ** 0.5)


# ---- scores
# ------------------------------------------------------------------------------------------------------------
def scored(problem, module, **keys):
    given = {
        "proposal": "laplace",
        "importance_samples": 200,
        "ais_temperatures": 0,
        "ais_chains": 16,
        "ais_rows": 7,
    }
    evidence = LatentEvidence(**(given | keys))
    problem.evidence, problem.importance_samples, problem.evaluation_chunk = (
        evidence,
        evidence.importance_samples,
        10,
    )
    return problem.score(LatentPosterior(module), Streams(0))


def test_scores_do_not_depend_on_the_guide(problem):
    exact_guide, wrong_guide = (ppca(problem, exact_guide=kind) for kind in (True, False))
    exact = -float(log_evidence(exact_guide, problem.test.x).mean())
    good, bad = scored(problem, exact_guide), scored(problem, wrong_guide)
    assert good["nelbo"] == pytest.approx(exact, abs=1e-8)
    assert bad["nelbo"] > exact + 0.05
    for found in (good, bad):
        assert found["nll_bound"] == pytest.approx(exact, abs=0.02)
        assert found["weight_ess"] > 60
        assert found["pareto_k"] < 0.7
    by_guide = scored(problem, wrong_guide, proposal="guide")
    assert by_guide.keys() == {"nelbo", "nll_bound"}
    problem.evidence = None
    assert problem.score(LatentPosterior(wrong_guide), Streams(0)) == by_guide, (
        "as before there was a choice"
    )


def test_annealing_is_of_the_first_rows_and_compared_on_them(problem):
    module = ppca(problem, exact_guide=False)
    found = scored(problem, module, ais_temperatures=40, ais_chains=64, ais_rows=13)
    exact = log_evidence(module, problem.test.x)[:13]
    assert found["nll_ais"] == pytest.approx(-float(exact.mean()), abs=0.08)
    assert found["ais_gain"] == pytest.approx(0, abs=0.08)
    alone = scored(
        problem, module, proposal="guide", ais_temperatures=40, ais_chains=64, ais_rows=13
    )
    assert alone["nll_ais"] == found["nll_ais"]
    assert "ais_gain" not in alone


def test_what_has_no_guide_of_rows_is_refused(problem):
    class Known:
        def log_weights(self, batch, n_samples, generator):
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


def test_a_run_of_an_auto_encoder_on_drawn_digits_is_scored():
    problem, rng = load(
        "images", binarised="static", n_train=60, n_test=6, proposal="laplace", ais_temperatures=5
    )
    module = component(
        "model", "vae", latent_dim=2, widths=[8], guide="separate", scale="softplus"
    ).build(problem, rng)
    found = problem.score(LatentPosterior(module), rng)
    assert found.keys() == {
        "nelbo",
        "nll_bound",
        "weight_ess",
        "pareto_k",
        "nll_ais",
        "ais_acceptance",
        "ais_gain",
    }
    assert all(math.isfinite(v) for v in found.values())
