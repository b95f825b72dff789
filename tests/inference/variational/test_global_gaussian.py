"""The bound of q(θ) = N(m, L Lᵀ), its gradients and its draws, compared with closed forms."""

import pytest
import torch
from conjugate_regression import (
    OfUnknownPrior,
    divergence,
    exact_bound,
    law_of,
    make_q,
    posterior,
    regression,
)
from support.runs.configured import component, load
from support.targets.known_targets import z_score
from torch.nn.utils import parameters_to_vector

from components.contracts.problems import Rows
from components.gradients.pathwise.reparam import Reparam
from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.inference.variational import global_gaussian
from components.inference.variational.global_gaussian import GlobalGaussian
from runner.execution.rng import Streams


# the bound
def set_to_posterior(model, problem, noise="shared"):
    m, S = posterior(model, problem)
    q = GlobalGaussian(RowwiseLogJoint(model), m, 1.0, True, noise)
    L = torch.linalg.cholesky(S)
    with torch.no_grad():
        q.log_std.copy_(L.diagonal().log())
        q.lower.copy_(L[tuple(torch.tril_indices(*L.shape, -1))])
    assert torch.allclose(q.covariance, S, atol=1e-12)
    return q


def test_posterior_rows_sum_to_evidence():
    problem, model = regression()
    evidence = model.log_evidence(problem.train)
    q = set_to_posterior(model, problem)
    z = q.sample(problem.train, 6, Streams(0).noise)
    whole = (q.log_joint(problem.train, z) - q.log_q(problem.train, z)).sum(1)
    assert torch.allclose(whole, evidence.expand(6), atol=1e-9)
    assert torch.allclose(exact_bound(q, model, problem), evidence, atol=1e-9)


def test_vargrad_is_zero_at_the_posterior():
    """f is the evidence at every θ, so that its variance over draws has no gradient (Boustati 2021,
    eq. 5.10)."""
    problem, model = regression()
    q = set_to_posterior(model, problem)
    rng = Streams(0)
    vargrad = component("gradient", "vargrad", n_samples=3)
    for _ in range(5):
        gradients, terms, _ = vargrad.estimate(q, problem.train, rng, vargrad.init(q, rng))
        assert parameters_to_vector(gradients).abs().max() < 1e-8
        assert torch.allclose(terms["elbo"], model.log_evidence(problem.train), atol=1e-9)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("hidden", [True, False])
def test_many_draws_match_closed_form_bound(full, hidden):
    problem, model = regression()
    q = make_q(OfUnknownPrior(model) if hidden else model, full).requires_grad_(False)
    assert (q.kl() == 0) == hidden
    noise = q.draw_noise(problem.train, 20000, Streams(0).noise)
    z = q.transform(noise)
    each = q.elbo_rows(problem.train, noise).sum(1) - q.kl()
    ratio = (q.log_joint(problem.train, z) - q.log_q(problem.train, z)).sum(1)
    exact = exact_bound(q, model, problem)
    assert z_score(torch.stack([each, ratio], 1), exact).abs().max() < 4
    assert exact < model.log_evidence(problem.train)


@pytest.mark.parametrize("full", [True, False])
def test_divergence_from_gaussian_prior_is_exact(full):
    _, model = regression()
    q = make_q(model, full)
    assert torch.allclose(q.kl(), divergence(q, model))
    assert torch.allclose(q.entropy, law_of(q).entropy())


@pytest.mark.parametrize("hidden", [True, False])
def test_scored_bound_uses_all_rows(hidden, monkeypatch):
    monkeypatch.setattr(global_gaussian, "CHUNK", 10)  # 24 rows: the last part is smaller
    problem, model = regression()
    q = make_q(OfUnknownPrior(model) if hidden else model)
    noise = q.draw_noise(problem.train, 50, Streams(0).noise)
    with torch.no_grad():
        expected = q.elbo_rows(problem.train, noise).sum(1).mean() - q.kl()
    assert torch.allclose(q.elbo(problem.train, noise[:, 0]), expected)


def test_noise_is_shared_or_drawn_per_row():
    problem, model = regression()
    rows = problem.train
    shared = make_q(model)
    q_of_rows = make_q(model, noise="rows")
    noise = shared.draw_noise(rows, 3, Streams(0).noise)
    assert noise.shape == (3, 24, 4)
    assert noise.stride(1) == 0
    # one evaluation equals separate evaluations for each row
    assert torch.allclose(
        shared.elbo_rows(rows, noise), q_of_rows.elbo_rows(rows, noise.contiguous())
    )
    z = shared.transform(noise)
    for density in (q_of_rows.log_joint, q_of_rows.log_q):
        assert torch.allclose(density(rows, z), density(rows, z.contiguous()))
    different = q_of_rows.draw_noise(rows, 3, Streams(0).noise)
    elbo_rows = q_of_rows.elbo_rows(rows, different)
    for b in (0, 5, 23):
        row = rows.part(slice(b, b + 1), 24.0)
        assert torch.allclose(
            elbo_rows[:, b : b + 1], q_of_rows.elbo_rows(row, different[:, b : b + 1])
        )
    assert not torch.allclose(different[:, 0], different[:, 1])


def largest_z(estimate, full, noise, hidden, steps=500):
    problem, model = regression(batch_size=8)
    q = make_q(OfUnknownPrior(model) if hidden else model, full, noise)
    exact = torch.autograd.grad(exact_bound(q, model, problem), list(q.parameters()))
    rng = Streams(0)
    batches = problem.batches("minibatch", rng, 0, steps)
    draws = torch.stack([parameters_to_vector(estimate(q, batch, rng)) for _, batch in batches])
    return float(z_score(draws, parameters_to_vector(exact)).abs().max())


def pathwise(q, batch, rng):
    gradients, terms, _ = Reparam(name="reparam", n_samples=1).estimate(q, batch, rng, None)
    assert terms.keys() >= {"elbo"}
    return gradients


def score_function(q, batch, rng):
    """Σ_b N/B ℓ_b ∇log q(θ_b), θ_b ~ q, with ℓ minus ℓ of another draw: the building blocks of
    LogRatio estimators."""
    z, other = (q.sample(batch, 1, rng.noise) for _ in range(2))
    f, baseline = (q.log_joint(batch, z) - q.log_q(batch, z) for z in (z, other))
    log_q = batch.scale * ((f - baseline).detach() * q.log_q(batch, z)).sum()
    return torch.autograd.grad(log_q, list(q.parameters()))


@pytest.mark.parametrize(
    ("estimate", "full", "noise", "hidden"),
    [
        (pathwise, True, "shared", False),
        (pathwise, True, "rows", True),
        (pathwise, False, "shared", True),
        (score_function, True, "shared", False),
        (score_function, True, "rows", False),
    ],
)
def test_minibatch_gradients_are_unbiased(estimate, full, noise, hidden):
    assert largest_z(estimate, full, noise, hidden) < 4.2  # at most 14 parameters


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["shared", "rows"])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(
    ("estimate", "hidden"), [(pathwise, False), (pathwise, True), (score_function, False)]
)
def test_minibatch_gradients_are_unbiased_in_many_draws(estimate, hidden, full, noise):
    assert largest_z(estimate, full, noise, hidden, 10000) < 4.2


def test_draws_per_row_reduce_variance():
    problem, model = regression()

    def variance(noise):
        q = make_q(model, noise=noise)
        rng = Streams(2)
        draws = [parameters_to_vector(pathwise(q, problem.train, rng)) for _ in range(200)]
        return float(torch.stack(draws).var(0).sum())

    assert variance("rows") < 0.5 * variance("shared")


def test_density_is_one_row_without_data():
    problem, rng = load("gaussian")
    q = make_q(component("model", "target_density").build(problem, rng))
    row = Rows(torch.zeros(1, 0), 1.0)
    z = q.sample(row, 5, Streams(0).noise)
    assert torch.allclose(q.log_joint(row, z)[:, 0], problem.log_density(z[:, 0]))
    assert torch.allclose(q.log_q(row, z)[:, 0], law_of(q).log_prob(z[:, 0]))
    noise = q.draw_noise(row, 5, Streams(0).noise)
    bound = problem.log_density(q.transform(noise)[:, 0]) + law_of(q).entropy()
    assert torch.allclose(q.elbo_rows(row, noise)[:, 0], bound)
