"""Black-box variational inference: families compared with quadrature and known optima, and the
variance reduction by Rao–Blackwellisation."""

import math
from functools import partial

import pytest
import torch
from support.runs.configured import (
    component,
    compose_component,
    double,
    generator,
    load,
    normal,
    uniform,
)
from support.small.line_model import line_gaussian, line_gradient, line_rows
from support.small.small_problems import train
from support.targets.known_targets import z_score
from support.targets.mean_field_families import F64, build_model, labels, log_joint, rows
from torch.nn.utils import parameters_to_vector
from torch.testing import assert_close

from components.inference.log_joint import log_joint as whole
from components.inference.rowwise_log_joint import RowwiseLogJoint
from components.inference.variational.flexible_guide import FlowGuide, MixtureGuide
from components.inference.variational.global_gaussian import GlobalGaussian
from runner.execution.rng import Streams

bbvi = partial(compose_component, "inference", "bbvi")


def guide(kind, P=2):
    problem = labels(D=P - 1)
    target = RowwiseLogJoint.of(
        build_model("probit_regression", problem, intercept_scale=2.0), problem
    )
    g = generator(0)
    places = normal(g, 3, P)
    if kind == "mixture":
        q = MixtureGuide(target, places, 0.5)
        q.logits.data = double([0.3, -0.4, 1.0])
    else:
        q = FlowGuide(target, places[0], 0.5, 3, 5, g)
        q.second.data = 0.7 * normal(g, q.second.shape)
    return q, problem


@pytest.mark.parametrize("kind", ["mixture", "flow"])
def test_densities_are_normalised_and_match_draws(kind):
    q, _ = guide(kind)
    side = torch.linspace(-9, 9, 500, dtype=F64)
    points = torch.cartesian_prod(side, side)
    mass = q.log_density(points).exp() * (side[1] - side[0]) ** 2
    assert mass.detach().sum() == pytest.approx(1, abs=1e-4)
    g = generator(1)
    noise = normal(g, 30_000, 2)
    u = uniform(g, 30_000)
    draws = q.draw(noise, u).detach()
    mean = (mass[:, None] * points).sum(0).detach()
    assert ((draws.mean(0) - mean).abs() < 5 * draws.std(0) / 30_000**0.5).all()
    theta, weights = q.places(noise)
    stratified = torch.einsum("sjp,j->p", theta, weights) / len(noise)
    assert ((stratified - mean).abs() < 5 * draws.std(0) / 30_000**0.5).all()
    if kind == "flow":
        jacobian = torch.autograd.functional.jacobian(lambda e: q.draw(e[None], u[:1])[0], noise[0])
        literal = (
            -0.5 * noise[0].square().sum()
            - math.log(2 * math.pi)
            - torch.linalg.slogdet(jacobian)[1]
        )
        assert_close(q.log_density(draws[:1])[0], literal)


@pytest.mark.parametrize("kind", ["mixture", "flow"])
@pytest.mark.parametrize("gradient", ["reparam", "sticking_the_landing", "reinforce_cv"])
def test_flexible_gradients_match_grid(kind, gradient):
    q, problem = guide(kind)
    side = torch.linspace(-8, 8, 160, dtype=F64)
    points = torch.cartesian_prod(side, side)
    target = log_joint(q.target.model, points, problem.train)
    log_q = q.log_density(points)
    bound = (log_q.exp() * (target - log_q)).sum() * (side[1] - side[0]) ** 2
    parameters = list(q.parameters())
    exact = parameters_to_vector([bound[None], *torch.autograd.grad(bound, parameters)])
    estimator = component("gradient", gradient, n_samples=40)
    rng = Streams(3)
    draws = []
    state = estimator.init(q, rng)
    for _ in range(40):
        gradients, terms, state = estimator.estimate(q, problem.train, rng, state)
        slopes = [0 * p if g is None else g for g, p in zip(gradients, parameters, strict=True)]
        draws.append(parameters_to_vector([terms["elbo"][None], *slopes]).detach())
    draws = torch.stack(draws)
    z = (draws.mean(0) - exact.detach()).abs() / (draws.std(0) / 40**0.5 + 1e-6)
    assert (z < 5).all(), z.sort(descending=True).values[:5]


def test_rao_blackwell_matches_equation_and_reduces_variance():
    """Eq. (6) of the paper, draw by draw; omitting the log q and priors of other coordinates
    reduces the variance."""
    problem = labels(D=3)
    model = build_model("logistic_regression", problem, intercept_scale=2.0)
    q = GlobalGaussian(
        RowwiseLogJoint.of(model, problem), 0.3 * torch.ones(4, dtype=F64), 0.6, False, "shared"
    )
    plain = component("gradient", "rao_blackwell", n_samples=6, control=False)
    gradients, terms, _ = plain.estimate(q, problem.train, Streams(2), None)
    theta = q.draw_theta(6, Streams(2).noise)
    literal = torch.zeros(2, 4, dtype=F64)
    for draw in theta:
        for i in range(4):
            normal = torch.distributions.Normal(q.mean[i], q.log_std[i].exp())
            log_q = normal.log_prob(draw[i])
            prior = torch.distributions.Normal(0.0, model.scales[i]).log_prob(draw[i])
            direct = model.log_likelihood(draw[None], problem.train).sum() + prior
            slopes = torch.autograd.grad(log_q, [q.mean, q.log_std])
            literal[:, i] += torch.stack([s[i] for s in slopes]) * (direct - log_q.detach()) / 6
    assert_close(torch.stack(gradients), literal)
    elbo = whole(model, theta, problem.train) - q.log_density(theta).detach()
    assert float(terms["elbo"]) == pytest.approx(float(elbo.mean()), rel=1e-9)

    def trace(name, **changes):
        estimator = component("gradient", name, n_samples=6, **changes)
        rng = Streams(5)
        draws = [
            torch.cat([g.detach() for g in estimator.estimate(q, problem.train, rng, None)[0]])
            for _ in range(400)
        ]
        return float(torch.stack(draws).var(0).sum())

    with_control = trace("rao_blackwell")
    without = trace("rao_blackwell", control=False)
    reinforce = trace("reinforce")
    assert with_control < 0.5 * without
    assert without < reinforce


@pytest.mark.parametrize(
    ("family", "sd", "gap"),
    [
        # KL(q ‖ π), as π has mass 1
        ("mean_field", math.sqrt(1 - 0.8**2), 0.5 * math.log(1 / (1 - 0.64))),
        ("full_rank", 1.0, 0.0),
        ("flow", 1.0, 0.0),
    ],
)
def test_mean_field_has_conditional_variances(family, sd, gap):
    """KL(q ‖ π) is minimal at variances 1/Λ_jj (Bishop 2006, eq. 10.13), the conditional variances
    given the other coordinates."""
    problem, _ = load("gaussian", correlation=0.8, mean=1.0)
    keys = {"gradient": "sticking_the_landing", "n_samples": 4, "lr": 0.05, "draws": 2000}
    inference = bbvi(family=family, layers=2, width=4, **keys)
    posterior = inference.posterior(
        train(inference, component("model", "target_density"), problem, 300)[0]
    )
    assert posterior.flat.std(0).tolist() == pytest.approx([sd] * 2, rel=0.06)
    assert posterior.mean.tolist() == pytest.approx([1.0, 1.0], abs=0.08)
    assert posterior.scores()["nelbo"] == pytest.approx(gap, abs=0.03)


def test_unlabelled_rows_reach_exact_evidence():
    problem = rows()
    inference = bbvi(family="full_rank", gradient="reparam", lr=0.05, draws=2000)
    state, rng = train(inference, component("model", "normal_gamma"), problem, 400)
    scores = problem.score(inference.posterior(state), rng)
    model = build_model("normal_gamma", problem)
    m, kappa, a, b = model.exact(problem.train)
    evidence = math.lgamma(a) - math.lgamma(model.a) + model.a * math.log(model.b) - a * math.log(b)
    evidence += 0.5 * math.log(model.kappa / kappa) - 0.5 * problem.n * math.log(2 * math.pi)
    assert evidence - 0.3 < -scores["nelbo"] < evidence
    assert scores["mean/mu"] == pytest.approx(m, abs=0.1)
    assert scores["mean/tau"] == pytest.approx(a / b, rel=0.15)


def test_control_variate_is_unbiased_with_two_draws():
    """With two draws, the bias of a coefficient from the same draws would be largest."""
    module = line_gaussian(False, "shared")
    data = line_rows()
    rng = Streams(7)
    estimator = component("gradient", "rao_blackwell", n_samples=2)
    draws = [torch.cat(estimator.estimate(module, data, rng, None)[0]) for _ in range(2500)]
    z = z_score(torch.stack(draws).detach(), line_gradient(module, data))
    assert z.abs().max() < 4.5
