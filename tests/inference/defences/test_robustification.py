"""Robustification: literal loops of its steps, its limits, and its value against each attacker."""

import itertools
import warnings

import pytest
import torch
from support.runs.configured import F64, normal
from support.small.small_problems import check_resumed, component, train
from support.small.small_spam import accuracy, words
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from components.errors import ConfigMismatchError, IncompleteResultWarning
from components.posteriors.particles import Particles
from runner.execution.rng import Streams

LOGISTIC = component("model", "logistic_regression")


def spam(n_words=6, batch_size=20, **attack):
    problem = words(n_words=n_words)
    problem.attacker = component(
        "attacker", "word_insertion", **{"against": "undefended", **attack}
    )
    problem.batch_size = batch_size
    return problem


def robustification(**settings):
    small = {"chains": 2, "undefended_steps": 3, "train_eps": 1, "temperature": 0.7}
    return component("inference", "robustification", **(small | settings))


def slope(theta, x, y, scale):
    """Gradient of log N(β_0; 0, 10²) Π N(β_j; 0, 1) plus the literal log-likelihood of the rows of
    x."""
    theta = theta.clone().requires_grad_()
    value = -0.5 * (theta[0] / 10) ** 2 - 0.5 * (theta[1:] ** 2).sum()
    for row, label in zip(x, y, strict=True):
        p = 1 / (1 + torch.exp(-(theta[0] + row @ theta[1:])))
        value = value + scale * torch.log(p if label else 1 - p)
    return torch.autograd.grad(value, theta)[0]


def worst_attack(theta, x, label, most):
    """(3.11) by search over all emails with at most ``most`` added words; innocent emails do not
    change."""
    if not label:
        return x
    spots = [j for j in range(len(x)) if x[j] == 0]
    results = []
    for size in range(most + 1):
        for added in itertools.combinations(spots, size):
            z = x.clone()
            z[list(added)] = 1
            results.append(z)
    return min(results, key=lambda z: float(theta[0] + z @ theta[1:]))


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_both_phases_match_equations(momentum):
    method = robustification(momentum=momentum)
    problem = spam()
    state, rng = train(method, LOGISTIC, problem, 0)
    twin = Streams(0)
    twin.noise.set_state(rng.noise.get_state())
    N = problem.n
    K = 2
    eta = method.lr / problem.n
    theta = [t.clone() for t in state.theta]
    v = [torch.zeros(7, dtype=F64) for _ in range(5)]
    x = problem.train.x
    y = problem.train.y[:, 0].tolist()
    attacked = None
    for t, batch in problem.batches("minibatch", rng, 0, 6):
        labels = batch.y[:, 0].tolist()
        scale = batch.scale
        if t <= 3:
            noise = torch.cat([torch.zeros(1, 7, dtype=F64), normal(twin.noise, K, 7)])
            moving = {i: (slope(theta[i], batch.x, labels, scale), noise[i]) for i in range(1 + K)}
        else:
            if attacked is None:
                attacked = [
                    [worst_attack(theta[1 + i], x[n], y[n], 1) for n in range(N)] for i in range(K)
                ]
            rows = torch.randint(N, (20,), generator=twin.noise).tolist()
            noise = normal(twin.noise, K, 7)
            moving = {}
            for i in range(K):
                both = [*batch.x, *(attacked[i][n] for n in rows)]
                gradient = slope(theta[1 + K + i], both, labels + [y[n] for n in rows], scale / 2)
                moving[1 + K + i] = gradient, noise[i]
        for i, (gradient, e) in moving.items():
            v[i] = (
                momentum * v[i]
                + eta * gradient
                + (2 * (1 - momentum) * eta * method.temperature) ** 0.5 * e
            )
            theta[i] = theta[i] + v[i]
        state, _ = method.step(state, batch, rng)
        assert_close(state.theta, torch.stack(theta), rtol=0, atol=1e-12)
    assert attacked is not None
    assert_close(state.attacked, torch.stack([torch.stack(rows) for rows in attacked]))


def test_undefended_is_clean_descent_and_stays_fixed():
    problem = spam()
    plain = component(
        "inference",
        "ara_training",
        chains=1,
        train_eps=0,
        defender_uncertainty=False,
        temperature=0.0,
        lr=0.1,
    )
    goal = train(plain, LOGISTIC, problem, 30)[0].theta
    method = robustification(undefended_steps=30)
    for steps in (30, 50):
        state, _ = train(method, LOGISTIC, problem, steps)
        assert_close(state.theta[:1], goal)
    undefended = method.posterior(state).undefended
    assert torch.equal(undefended.theta, state.theta[:1])
    assert not torch.allclose(state.theta[3:], goal.expand(2, -1), atol=0.05)


def test_robust_training_withstands_attack():
    problem = spam(n_words=12, batch_size=None)
    x = problem.test.x
    y = problem.test.y
    settings = {"lr": 2.0, "temperature": 0.01, "undefended_steps": 300, "train_eps": 2}
    for train_eps, holds in ((2, True), (0, False)):
        method = robustification(**{**settings, "train_eps": train_eps})
        posterior = method.posterior(train(method, LOGISTIC, problem, 600)[0])
        tainted = problem.attacker.perturb(Attacked(posterior, problem.bounds), x, y, Streams(0), 2)
        perturbed = problem.attacker.perturb(
            Attacked(posterior.undefended, problem.bounds), x, y, Streams(0), 2
        )
        assert torch.equal(tainted, perturbed)  # directed at the undefended model
        gain = accuracy(posterior, tainted, y) - accuracy(posterior.undefended, tainted, y)
        assert (gain > 0.1) is holds, gain


@pytest.mark.parametrize("stop", [2, 3, 5])  # before, at and after the attack on the training set
def test_resumed_run_is_bit_identical(tmp_path, stop):
    check_resumed(robustification(), LOGISTIC, spam(), tmp_path, 6, stop)


def test_run_ending_before_defence_is_reported():
    method = robustification(undefended_steps=5)
    problem = spam()
    with pytest.warns(
        IncompleteResultWarning,
        match=r"untrained.*lower inference\.undefended_steps or raise steps",
    ):
        method.posterior(train(method, LOGISTIC, problem, 5)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior = method.posterior(train(method, LOGISTIC, problem, 6)[0])
    assert isinstance(posterior.undefended, Particles)


def test_unsupported_training_attacks_are_refused():
    problem = spam()
    with pytest.raises(ConfigMismatchError, match=r"inference\.train_eps: 1\.5 .*; use an integer"):
        train(robustification(train_eps=1.5), LOGISTIC, problem, 1)
    problem.attacker = None
    with pytest.raises(ConfigMismatchError, match="a defence requires an evasion attack"):
        train(robustification(), LOGISTIC, problem, 1)
