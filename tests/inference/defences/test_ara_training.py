import dataclasses
import math

import pytest
import torch
from support.runs.configured import F64, double, generator, normal, uniform
from support.small.small_problems import (
    advance,
    attacked_problem,
    classes,
    component,
    train,
)
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from components.attackers.evasion.langevin import beta_sizes, langevin, poisson_steps
from components.contracts.problems import Batch
from components.errors import ConfigMismatchError
from components.inference.defences.particle_dynamics import per_particle_gradient
from components.inference.log_joint import value_and_gradient
from components.posteriors.particles import BlockwiseParticles, Particles
from runner.execution.rng import Streams

MLP = component("model", "mlp", widths=[5], activation="tanh")


def ara(**settings):
    return component(
        "inference", "ara_training", **({"chains": 3, "lr": 0.1, "train_eps": 0.2} | settings)
    )


def literal_attack(inference, model, theta, batch, generator):
    """(3.14) for every particle and row, with random numbers in the order of the module."""
    K = len(theta)
    B, D = batch.x.shape
    rate = torch.full((1,), inference.attack_steps, dtype=F64)
    T = int(torch.poisson(rate, generator=generator))
    shapes = double(inference.attack_beta).expand(K * B, 2)
    g, h = torch._standard_gamma(shapes, generator=generator).view(K, B, 2, 1).unbind(2)
    eps = inference.attack_step * inference.train_eps * g / (g + h)
    low = (batch.x - inference.train_eps).clamp_min(0)
    high = (batch.x + inference.train_eps).clamp_max(1)
    x = batch.x.expand(K, B, D)
    for _ in range(T):
        noise = normal(generator, K * B, D).view(K, B, D)
        leaf = x.clone().requires_grad_()
        fit = sum(log_p(model, *pair, batch.y) for pair in zip(theta, leaf, strict=True))
        (slope,) = torch.autograd.grad(fit, leaf)
        x = x - eps * slope.sign() + (2 * eps * inference.attack_temperature).sqrt() * noise
        x = x.clamp(low, high)
    return x


def log_p(model, beta, x, y):
    """Σ_b log p(y_b|x_b, β), with a literal softmax."""
    f = model.outputs(beta[None], x)[0, :, 0]
    return (f.gather(1, y)[:, 0] - f.exp().sum(1).log()).sum()


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_steps_match_algorithm_3_2(momentum):
    """x_i ~ p_C(x'|x) by (3.14), then β_i by (3.15), particle by particle; η = lr/N."""
    inference = ara(momentum=momentum, attack_steps=3.0, temperature=0.7)
    problem = attacked_problem()
    state, rng = train(inference, MLP, problem, 0)
    model = state.model
    twin = Streams(0)
    twin.attack.set_state(rng.attack.get_state())
    twin.noise.set_state(rng.noise.get_state())
    theta = state.theta.clone()
    v = torch.zeros_like(state.theta)
    eta = 0.1 / problem.n
    for _, batch in problem.batches("minibatch", rng, 0, 2):
        x = literal_attack(inference, model, theta, batch, twin.attack)
        leaf = theta.clone().requires_grad_()
        log_joint = -0.5 * (leaf**2).sum()  # N(0, 1) priors, up to a constant
        for beta, attacked in zip(leaf, x, strict=True):
            fit = log_p(model, beta, batch.x, batch.y) + log_p(model, beta, attacked, batch.y)
            log_joint = log_joint + batch.scale / 2 * fit  # clean and attacked 1:1
        (drift,) = torch.autograd.grad(log_joint, leaf)
        noise = math.sqrt(2 * (1 - momentum) * eta * 0.7) * normal(twin.noise, theta.shape)
        v = momentum * v + eta * drift + noise
        theta = theta + v
        state, _ = inference.step(state, batch, rng)
        assert_close(state.theta, theta)


def simulate_theta(inference, start, problem):
    """θ after the given steps from given particles."""
    rng = Streams(3)
    state = inference.init(MLP.build(problem, rng), problem, rng)
    state = dataclasses.replace(state, theta=start.clone(), start=start)
    state, _ = advance(inference, state, problem, rng, 0, 8)
    return state.theta


@pytest.mark.parametrize(("attacker", "momentum"), [("fgsm", 0.5), ("pgd", 0.0)])
def test_certain_single_particle_is_adversarial_training(attacker, momentum):
    problem = attacked_problem(attacker, **({"steps": 3} if attacker == "pgd" else {}))
    shared = {"lr": 0.1, "momentum": momentum, "train_eps": 0.2}
    rng = Streams(3)
    plain = component("inference", "adversarial_training", optimizer="sgd", **shared)
    state = plain.init(MLP.build(problem, rng), problem, rng)
    start = state.network.theta.detach().clone()[None]
    state, _ = advance(plain, state, problem, rng, 0, 8)
    off = {"chains": 1, "attacker_uncertainty": False, "defender_uncertainty": False}
    assert_close(
        simulate_theta(ara(**shared, **off), start, problem), state.network.theta.detach()[None]
    )
    for switch in off.keys() - {"chains"}:
        other = simulate_theta(ara(**shared, **off | {switch: True}), start, problem)
        assert (other - state.network.theta.detach()).abs().max() > 1e-4, switch


@pytest.mark.parametrize("defender", [True, False])
def test_without_attack_steps_are_sgld(defender):
    """With train_eps = 0, no momentum and τ = 1, steps are SGLD with step lr/N, for any mixture."""
    problem = attacked_problem()
    settings = {
        "momentum": 0.0,
        "train_eps": 0.0,
        "temperature": 1.0,
        "defender_uncertainty": defender,
    }
    inference = ara(**settings)
    start = inference.init(MLP.build(problem, Streams(3)), problem, Streams(3)).theta
    sgld = component("inference", "sgld", chains=3, step_size=0.1 / problem.n)
    expected = simulate_theta(sgld, start, problem)
    for mixture in ("half", "attacked"):
        assert_close(simulate_theta(ara(**settings, mixture=mixture), start, problem), expected)
    attacked = simulate_theta(ara(**settings | {"train_eps": 0.2}), start, problem)
    assert (attacked - expected).abs().max() > 1e-3


def test_predictive_is_mean_over_particles():
    inference = ara()
    problem = attacked_problem()
    state, rng = train(inference, MLP, problem, 3)
    posterior = inference.posterior(state)
    assert posterior.theta.shape == (3, state.model.dim)
    probs = torch.stack(
        [state.model.outputs(beta[None], problem.test.x)[0].softmax(-1) for beta in state.theta]
    ).mean(0)
    assert_close(posterior.predict(problem.test.x, rng.evaluation).probs, probs)


@pytest.mark.parametrize(
    "model", [MLP, component("model", "bnn", widths=[4]), component("model", "logistic_regression")]
)
def test_particles_accept_their_own_inputs(model):
    """p(y|x_k, β_k), ∇_x and ∇_β agree between a joint computation (if the model supports it) and
    separate ones."""
    problem = attacked_problem()
    rng = Streams(0)
    built = model.build(problem, rng)
    theta = built.sample_prior(3, rng.init)
    x = uniform(rng.data, 3, 7, 4)
    batch = Batch(x, problem.train.y[:7], problem.train.mask[:7], 2.0)
    value, gradient = per_particle_gradient(built, theta, batch)
    victim = Attacked(BlockwiseParticles(built, theta))
    y = problem.train.y[:7]
    slopes = victim.input_gradient(x.flatten(0, 1), y.repeat(3, 1), rng.attack).unflatten(0, (3, 7))
    for k in range(3):
        row = Batch(x[k], batch.y, batch.mask, 2.0)
        expected = value_and_gradient(built, theta[k : k + 1], row)
        assert_close(value[k : k + 1], expected[0])
        assert_close(gradient[k : k + 1], expected[1])
        reference = Attacked(Particles(built, theta[k : k + 1])).input_gradient(x[k], y, rng.attack)
        assert_close(slopes[k], reference)


def test_each_particle_is_attacked_separately():
    problem = attacked_problem()
    rng = Streams(3)
    inference = ara(chains=3, train_eps=0.2, defender_uncertainty=False)
    state = inference.init(MLP.build(problem, rng), problem, rng)
    perturbed = inference.attack(state, problem.train, Streams(4))
    for k in range(3):
        reference = Particles(state.model, state.theta[k : k + 1])
        assert torch.equal(perturbed[k], state.threat.attack(reference, problem.train, Streams(4)))
    assert not torch.equal(perturbed[0], perturbed[1])


def test_attack_sizes_have_expected_moments():
    """ε has half the largest value as its mean, T has mean and variance λ; rows without a label or
    with T = 0 do not change."""
    g = generator(0)
    rows = torch.zeros(20_000, 1, dtype=F64)
    eps = beta_sizes(rows, 0.4, [2.0, 2.0], g)[:, 0]
    T = poisson_steps(rows, 5.0, g).double()
    assert abs(z_score(eps, 0.2)) < 4
    assert abs(z_score(T, 5.0)) < 4
    assert [float(eps.var()), float(T.var())] == [
        pytest.approx(0.16 / 20, abs=0.0005),
        pytest.approx(5, abs=0.25),
    ]
    problem = classes(n=6)
    victim = Attacked(Particles(MLP.build(problem, Streams(0)), normal(g, 1, 43)), (0.0, 1.0))
    y = problem.test.y.clone()
    steps = torch.tensor([3, 3, 0, 1, 1, 1])
    y[1] = -1
    size = torch.full((6, 1), 0.1, dtype=F64)
    keys = {"step_size": size, "steps": steps, "temperature": 0.1, "radius": 0.15}
    perturbed = langevin(victim, problem.test.x, y, g, **keys)
    distance = (perturbed - problem.test.x).abs().amax(1)
    assert (distance > 0).tolist() == [True, False, False, True, True, True]
    assert distance.max() <= 0.15 + 1e-12
    assert 0 <= perturbed.min() <= perturbed.max() <= 1


def test_binary_inputs_use_only_configured_attacker():
    """Gallego (2021), section 3.6.1: no uncertainty of (3.14) for discrete attacks; sizes count
    changed words."""
    attacker = component("attacker", "word_flip")
    problem = dataclasses.replace(classes(n_classes=2), domain="binary", attacker=attacker)
    problem.train = dataclasses.replace(problem.train, x=problem.train.x.round())
    refused = [
        ({"train_eps": 1.0}, r"defender_uncertainty: draws of \(3.14\) are continuous"),
        (
            {"train_eps": 0.3, "defender_uncertainty": False},
            "train_eps: 0.3 is not a number of changed inputs",
        ),
    ]
    for keys, message in refused:
        with pytest.raises(ConfigMismatchError, match=f"inference.{message}"):
            train(ara(**keys), MLP, problem, 0)
    inference = ara(train_eps=2.0, defender_uncertainty=False)
    state, _ = train(inference, MLP, problem, 0)
    attacked = inference.attack(state, problem.train, Streams(1))
    changed = (attacked != problem.train.x).sum(-1)  # [K, B]
    assert changed.max() <= 2
    assert not changed[:, problem.train.y[:, 0] == 0].any()
    assert changed.any()
