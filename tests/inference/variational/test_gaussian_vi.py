"""q(θ) = N(m, L Lᵀ) against conjugate posteriors, whose bound, evidence and gradients are known."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from omegaconf import OmegaConf
from support.runs.configured import component, generator, normal
from support.runs.offered_pairs import check_pairs
from support.small.small_problems import advance, check_resumed, real, train
from support.targets.known_targets import z_score
from torch.distributions import MultivariateNormal, kl_divergence

from components.contracts.problems import Rows
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient, Model, Setting
from components.errors import ConfigMismatchError, NumericalError
from components.gradients.pathwise.reparam import Reparam
from components.inference.variational import global_gaussian
from components.inference.variational.global_gaussian import GlobalGaussian, RowwiseLogJoint
from components.models.linear.linear_regression import LinearRegressionModule
from components.posteriors.variational import GaussianPosterior
from runner import CONF
from runner.compose.build import build_component
from runner.compose.parts import expand_component
from runner.errors import ConfigError
from runner.execution.rng import Streams

F64 = torch.float64
LINEAR = component("model", "linear_regression", noise=0.25, prior_scale=1.2, intercept_scale=3.0)
STEPS = 500
SETTING = Setting(Path("nowhere"), torch.device("cpu"), F64, 1, offline=True)


def gaussian_vi(**changes):
    values = OmegaConf.to_container(OmegaConf.load(CONF / "inference/gaussian_vi.yaml")) | changes
    return build_component(
        "inference", expand_component("inference", values, "inference"), "inference"
    )


def regression(batch_size=None):
    """24 rows, three inputs and an intercept; the posterior is correlated."""
    problem = real(n=24, n_tasks=1, missing=0.0, batch_size=batch_size)
    problem.train.x[:, 1] += 0.9 * problem.train.x[:, 0]
    return problem, LINEAR.build(problem, Streams(0))


class OfUnknownPrior:
    """The same log joint, which does not say that its prior is Gaussian."""

    def __init__(self, model: LinearRegressionModule):
        self.dim, self.names, self.constrain = model.dim, model.names, model.constrain
        self.sample_prior, self.log_prior = model.sample_prior, model.log_prior
        self.log_likelihood = model.log_likelihood


def some_q(model, full=True, noise="shared"):
    g = generator(1)
    q = GlobalGaussian(
        RowwiseLogJoint(model),
        0.3 * normal(g, model.dim),
        0.4,
        full,
        noise,
    )
    with torch.no_grad():
        q.log_std += 0.2 * normal(g, model.dim)
        if q.lower is not None:
            q.lower += 0.2 * normal(g, len(q.lower))
    return q


def posterior(model, problem):
    known = model.coefficients(problem.train)
    return known.m, model.noise * known.covariance


def exact_bound(q, model, problem):
    """E_q log p(y | θ) − KL(q ‖ p) in closed form, by other formulas than the module's."""
    X = torch.cat([torch.ones(problem.n, 1, dtype=F64), problem.train.x], 1)
    residual = problem.train.y[:, 0] - X @ q.mean
    square = residual.square().sum() + (X @ q.covariance * X).sum()
    fit = -0.5 * square / model.noise - 0.5 * problem.n * math.log(2 * math.pi * model.noise)
    prior = MultivariateNormal(
        torch.zeros_like(q.mean), precision_matrix=model.penalty.diag() / model.noise
    )
    return fit - kl_divergence(MultivariateNormal(q.mean, q.covariance), prior)


def flat(gradients):
    return torch.cat([g.flatten() for g in gradients])


# where it ends
@pytest.mark.parametrize(("noise", "batch_size"), [("shared", None), ("rows", 8)])
def test_a_full_covariance_reaches_the_posterior_of_a_linear_regression(noise, batch_size):
    problem, model = regression(batch_size)
    inference = gaussian_vi(n_samples=8, lr=0.03, initial_std=0.3, noise=noise)
    state, rng = train(inference, LINEAR, problem, 400)
    state.optimizer.settings["lr"] = 0.002
    state, info = advance(inference, state, problem, rng, 400, 700)
    assert set(info) == {"elbo", "kl", "grad_norm"}
    m, S = posterior(model, problem)
    found = inference.posterior(state)
    sd = S.diagonal().sqrt()
    assert ((found.q_mean - m) / sd).abs().max() < 0.15
    assert ((found.q_covariance - S) / torch.outer(sd, sd)).abs().max() < 0.15
    evidence = float(model.log_evidence(problem.train))
    bound = float(exact_bound(state.module, model, problem).detach())
    assert evidence - 0.1 < bound <= evidence


def test_a_diagonal_one_has_the_precisions_of_the_posterior():
    """The best factorised q of a Gaussian has its mean and 1/Λ_jj (Bishop 2006, eq. 10.12); sgd,
    from a drawn mean."""
    problem, model = regression()
    inference = gaussian_vi(
        covariance="diagonal",
        n_samples=16,
        optimizer="sgd",
        lr=0.005,
        momentum=0.9,
        start="drawn",
        initial_std=0.2,
    )
    state, _ = train(inference, LINEAR, problem, 700)
    m, S = posterior(model, problem)
    precise = torch.linalg.inv(S).diagonal()
    found = inference.posterior(state)
    assert ((found.q_mean - m) * precise.sqrt()).abs().max() < 0.3
    assert torch.allclose(found.q_covariance, (1 / precise).diag(), rtol=0.15, atol=1e-12)
    assert (
        float(exact_bound(state.module, model, problem).detach())
        < float(model.log_evidence(problem.train)) - 0.05
    )


def test_it_reaches_a_gaussian_density():
    problem = component("dataset", "gaussian").load(Streams(0), SETTING)
    inference = gaussian_vi(n_samples=16, lr=0.03, start="drawn", draws=4000)
    state, rng = train(inference, component("model", "target_density"), problem, 250)
    scores = problem.score(inference.posterior(state), rng)
    assert scores["error_mean"] < 0.15
    assert scores["error_second_moment"] < 0.4


# the bound
def at_posterior(model, problem, noise="shared"):
    m, S = posterior(model, problem)
    q, L = GlobalGaussian(RowwiseLogJoint(model), m, 1.0, True, noise), torch.linalg.cholesky(S)
    with torch.no_grad():
        q.log_std.copy_(L.diagonal().log())
        q.lower.copy_(L[tuple(torch.tril_indices(*L.shape, -1))])
    assert torch.allclose(q.covariance, S, atol=1e-12)
    return q


def test_at_the_posterior_rows_sum_to_the_evidence_at_every_draw():
    problem, model = regression()
    evidence = model.log_evidence(problem.train)
    q = at_posterior(model, problem)
    z = q.sample(problem.train, 6, Streams(0).noise)
    whole = (q.log_joint(problem.train, z) - q.log_q(problem.train, z)).sum(1)
    assert torch.allclose(whole, evidence.expand(6), atol=1e-9)
    assert float(exact_bound(q, model, problem).detach()) == pytest.approx(
        float(evidence), abs=1e-9
    )


def test_at_the_posterior_vargrad_is_zero_at_every_draw():
    """f is the evidence at every θ, so that its variance over draws has no gradient (Boustati 2021,
    eq. 5.10)."""
    problem, model = regression()
    q, vargrad, rng = (
        at_posterior(model, problem),
        component("gradient", "vargrad", n_samples=3),
        Streams(0),
    )
    for _ in range(5):
        gradients, terms, _ = vargrad.estimate(q, problem.train, rng, vargrad.init(q, rng))
        assert flat(gradients).abs().max() < 1e-8
        assert float(terms["elbo"]) == pytest.approx(
            float(model.log_evidence(problem.train)), abs=1e-9
        )


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("hidden", [True, False])
def test_the_bound_of_many_draws_is_the_one_in_closed_form(full, hidden):
    problem, model = regression()
    q = some_q(OfUnknownPrior(model) if hidden else model, full)
    assert (q.kl() == 0) == hidden
    with torch.no_grad():
        noise = q.draw_noise(problem.train, 20000, Streams(0).noise)
        each = q.elbo_rows(problem.train, noise).sum(1) - q.kl()
        z = q.transform(noise)
        ratio = (q.log_joint(problem.train, z) - q.log_q(problem.train, z)).sum(1)
    exact = float(exact_bound(q, model, problem).detach())
    for values in (each, ratio):
        assert abs(float(values.mean()) - exact) < 4 * float(values.std()) / 20000**0.5
    assert exact < model.log_evidence(problem.train)


@pytest.mark.parametrize("full", [True, False])
def test_the_divergence_from_a_gaussian_prior_is_exact(full):
    _, model = regression()
    q = some_q(model, full)
    prior = MultivariateNormal(
        torch.zeros_like(q.mean), precision_matrix=model.penalty.diag() / model.noise
    )
    assert torch.allclose(q.kl(), kl_divergence(MultivariateNormal(q.mean, q.covariance), prior))
    assert torch.allclose(q.entropy, MultivariateNormal(q.mean, q.covariance).entropy())


@pytest.mark.parametrize("hidden", [True, False])
def test_the_bound_that_is_scored_is_that_of_all_rows_by_the_draws_of_the_posterior(
    hidden, monkeypatch
):
    monkeypatch.setattr(global_gaussian, "CHUNK", 10)  # 24 rows: the last part is smaller
    problem, model = regression()
    q = some_q(OfUnknownPrior(model) if hidden else model)
    noise = q.draw_noise(problem.train, 50, Streams(0).noise)
    with torch.no_grad():
        expected = q.elbo_rows(problem.train, noise).sum(1).mean() - q.kl()
    assert torch.allclose(q.elbo(problem.train, noise[:, 0]), expected)


def test_a_shared_draw_is_one_for_all_rows_and_rows_have_their_own():
    problem, model = regression()
    shared, own = some_q(model), some_q(model, noise="rows")
    noise = shared.draw_noise(problem.train, 3, Streams(0).noise)
    assert noise.shape == (3, 24, 4)
    assert noise.stride(1) == 0
    # what is evaluated once is what each row would have found by itself
    assert torch.allclose(
        shared.elbo_rows(problem.train, noise), own.elbo_rows(problem.train, noise.contiguous())
    )
    z = shared.transform(noise)
    for name in ("log_joint", "log_q"):
        density = {"log_joint": own.log_joint, "log_q": own.log_q}[name]
        assert torch.allclose(density(problem.train, z), density(problem.train, z.contiguous()))
    different = own.draw_noise(problem.train, 3, Streams(0).noise)
    found = own.elbo_rows(problem.train, different)
    for b in (0, 5, 23):
        one = problem.train.part(slice(b, b + 1), 24.0)
        assert torch.allclose(found[:, b : b + 1], own.elbo_rows(one, different[:, b : b + 1]))
    assert not torch.allclose(different[:, 0], different[:, 1])


# gradients
def largest_z(estimate, full, noise, hidden, steps=STEPS):
    problem, model = regression(batch_size=8)
    q = some_q(OfUnknownPrior(model) if hidden else model, full, noise)
    exact = flat(torch.autograd.grad(exact_bound(q, model, problem), list(q.parameters())))
    rng, found = Streams(0), []
    for _, batch in problem.batches("minibatch", rng, 0, steps):
        found.append(estimate(q, batch, rng))
    draws = torch.stack(found)
    return float((z_score(draws, exact)).abs().max())


def pathwise(q, batch, rng):
    gradients, terms, _ = Reparam(name="reparam", n_samples=1).estimate(q, batch, rng, None)
    assert terms.keys() >= {"elbo"}
    return flat(gradients)


def score_function(q, batch, rng):
    """Σ_b N/B ℓ_b ∇log q(θ_b), θ_b ~ q, with ℓ less that of another draw: any LogRatio estimator is
    built of these."""
    z, other = (q.sample(batch, 1, rng.noise) for _ in range(2))
    f, baseline = (q.log_joint(batch, z) - q.log_q(batch, z) for z in (z, other))
    log_q = batch.scale * ((f - baseline).detach() * q.log_q(batch, z)).sum()
    return flat(torch.autograd.grad(log_q, list(q.parameters())))


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
def test_gradients_of_minibatches_are_unbiased(estimate, full, noise, hidden):
    assert largest_z(estimate, full, noise, hidden) < 4.2  # of at most 14 parameters


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["shared", "rows"])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(
    ("estimate", "hidden"), [(pathwise, False), (pathwise, True), (score_function, False)]
)
def test_gradients_of_minibatches_are_unbiased_in_many_draws(estimate, hidden, full, noise):
    assert largest_z(estimate, full, noise, hidden, 10000) < 4.2


def test_rows_with_draws_of_their_own_vary_less():
    problem, model = regression()

    def variance(noise):
        q, rng = some_q(model, noise=noise), Streams(2)
        return float(
            torch.stack([pathwise(q, problem.train, rng) for _ in range(200)]).var(0).sum()
        )

    assert variance("rows") < 0.5 * variance("shared")


# as a part of a run
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_killed_and_resumed_it_goes_on_bit_identically(tmp_path, optimizer):
    problem, _ = regression(batch_size=7)
    inference = gaussian_vi(n_samples=2, optimizer=optimizer, lr=0.001, noise="rows", draws=5)
    check_resumed(inference, LINEAR, problem, tmp_path)


def test_the_posterior_predicts_by_draws_of_q():
    problem, _ = regression()
    inference = gaussian_vi(draws=10000, initial_std=0.5)
    state, rng = train(inference, LINEAR, problem, 30)
    found = inference.posterior(state)
    assert isinstance(found, GaussianPosterior)
    assert torch.equal(found.q_covariance, state.module.covariance)
    draws = found.flat
    sd = found.q_covariance.diagonal().sqrt()
    assert ((draws.mean(0) - found.q_mean) / sd).abs().max() < 0.04
    assert torch.allclose(torch.cov(draws.T), found.q_covariance, atol=0.03)
    mixture = found.predict(problem.test.x, rng.evaluation)
    X = torch.cat([torch.ones(problem.n, 1, dtype=F64), problem.test.x], 1)
    assert torch.allclose(mixture.mu.mean(0)[:, 0], X @ found.q_mean, atol=0.05)
    scores = problem.score(found, rng)
    assert {"rmse", "nlpp", "nelbo"} <= set(scores)
    exact = exact_bound(state.module, regression()[1], problem)
    assert scores["nelbo"] == pytest.approx(-float(exact.detach()), rel=0.02)
    assert torch.equal(inference.posterior(state).draws, found.draws)  # q alone moves them


def test_a_step_that_is_too_long_is_named():
    problem, _ = regression()
    with pytest.raises(NumericalError, match=r"lower inference.lr"):
        train(gaussian_vi(optimizer="sgd", lr=100.0), LINEAR, problem, 200)


def test_a_log_joint_without_a_gradient_is_refused():
    problem, model = regression()
    dull = OfUnknownPrior(model)
    dull.log_prior = lambda theta: model.log_prior(theta).detach()
    dull.log_likelihood = lambda theta, batch: model.log_likelihood(theta, batch).detach()
    with pytest.raises(ConfigMismatchError, match="cannot be differentiated"):
        gaussian_vi().init(dull, problem, Streams(0))


class OfLayers(Gradient):
    requires = Requirements(capabilities=frozenset({"bernoulli_layers"}))


class WithThem(Model):
    requires = Requirements(kinds=frozenset({"supervised"}))
    offers: ClassVar[frozenset[str]] = frozenset(
        {"log_joint", "theta_predictive", "bernoulli_layers"}
    )


def test_a_gradient_that_q_does_not_serve_is_refused_whatever_the_model_offers():
    data, inference = component("dataset", "two_moons"), gaussian_vi()
    check_pairs(data, component("model", "logistic_regression"), inference, None)
    wrong = inference.model_copy(update={"gradient": OfLayers(name="of_layers")})
    with pytest.raises(
        ConfigError,
        match=r"which the q\(θ\) of inference=gaussian_vi lacks; gradients that fit it: .*reparam",
    ):
        check_pairs(data, WithThem(name="layered"), wrong, None)


def test_a_density_is_one_row_without_data():
    problem = component("dataset", "gaussian").load(Streams(0), SETTING)
    model = component("model", "target_density").build(problem, Streams(0))
    q = some_q(model)
    row = Rows(torch.zeros(1, 0), 1.0)
    z = q.sample(row, 5, Streams(0).noise)
    assert torch.allclose(q.log_joint(row, z)[:, 0], problem.log_density(z[:, 0]))
    expected = MultivariateNormal(q.mean, q.covariance).log_prob(z[:, 0])
    assert torch.allclose(q.log_q(row, z)[:, 0], expected)
    noise = q.draw_noise(row, 5, Streams(0).noise)
    bound = (
        problem.log_density(q.transform(noise)[:, 0])
        + MultivariateNormal(q.mean, q.covariance).entropy()
    )
    assert torch.allclose(q.elbo_rows(row, noise)[:, 0], bound)
