"""Bounds on the risk of a randomised classifier: the inverse of kl, Maurer's inequality by
enumeration, and a network with a valid bound that deliberate mistakes violate."""

import math
from dataclasses import replace

import pytest
import torch
from pydantic import ValidationError
from scipy import optimize, stats
from support.runs.configured import component, generator, load
from support.small.small_problems import advance, classes

from components.errors import ConfigMismatchError
from components.inference.variational.pac_bayes import divergence, gibbs_risk
from components.maths.divergences.pac_bound import binary_kl, gibbs_risk_bound, invert_kl
from runner.execution.rng import Streams


@pytest.mark.parametrize("q", [0.0, 0.05, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("nats", [1e-3, 0.1, 2.0])
def test_inverse_solves_the_equation(q, nats):
    bound = invert_kl(q, nats)
    assert q <= bound <= 1
    if q < 1:
        root = optimize.brentq(lambda p: binary_kl(q, p) - nats, max(q, 1e-15), 1 - 1e-15)
        assert bound == pytest.approx(root, abs=1e-9)
    if q == 0:
        assert bound == pytest.approx(1 - math.exp(-nats))  # log 1/(1 − p) = c


@pytest.mark.parametrize("risk", [0.02, 0.3])
@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_bound_fails_at_most_as_often_as_delta(risk, delta):
    """One fixed network (KL = 0) with a binomial number of errors; the draws are its complete
    distribution."""
    n = 40
    k = range(n + 1)
    bounds = [invert_kl(i / n, math.log(2 * math.sqrt(n) / delta) / n) for i in k]
    failed = sum(stats.binom.pmf(i, n, risk) for i in k if bounds[i] < risk)
    assert failed <= delta
    broken = [i / n for i in k]  # without the penalty
    assert sum(stats.binom.pmf(i, n, risk) for i in k if broken[i] < risk) > delta
    m = 30  # networks that are wrong or right for all rows
    fails = [gibbs_risk_bound(i / m, 0.0, 10**9, m, 0.5, delta) < risk for i in range(m + 1)]
    assert sum(stats.binom.pmf(i, m, risk) for i in range(m + 1) if fails[i]) <= delta


def test_terms_equal_literal_sums():
    literal = invert_kl(
        invert_kl(0.1, math.log(2 / 0.01) / 1000),
        (3.0 + math.log(2 * math.sqrt(100) / 0.025)) / 100,
    )
    assert gibbs_risk_bound(0.1, 3.0, 100, 1000, 0.025, 0.01) == literal


def fit_bound(problem, seed, steps, widths=(8,), **keys):
    settings = {"draws": 60, "n_predict": 2, "prior_steps": 60, "lr": 0.03} | keys
    inference = component("inference", "pac_bayes", **settings)
    rng = Streams(seed)
    model = component("model", "mlp", widths=list(widths)).build(problem, rng)
    state = inference.init(model, problem, rng)
    return inference, *advance(inference, state, problem, rng, 0, steps)


def test_divergence_and_objective_equal_literal_ones():
    problem = classes(n=20, n_inputs=2, n_classes=2)
    inference, state, _ = fit_bound(problem, 0, 80)
    q = state.q
    centre = state.centre
    sd = q.log_std.detach().exp()
    normal = torch.distributions.Normal
    kl = torch.distributions.kl_divergence(
        normal(q.network.theta.detach(), sd), normal(centre, inference.prior_std)
    ).sum()
    assert float(divergence(q, centre, inference.prior_std).detach()) == pytest.approx(float(kl))
    assert float(kl) > 0
    terms = inference.objective(q, centre, state.certified, generator(0))
    theta = q.draw(1, generator(0))
    p = q.network.outputs(theta, state.certified.x)[0, :, 0].softmax(-1)
    risk = -p[torch.arange(10), state.certified.y[:, 0]].log2().mean()
    n = state.certified.n_rows
    assert n == 10
    literal = risk + math.sqrt((float(kl) + math.log(2 * math.sqrt(n) / 0.025)) / (2 * n))
    assert float(terms["objective"].detach()) == pytest.approx(float(literal.detach()))
    assert state.prior_rows.n_rows + n == 20
    both = torch.cat([state.prior_rows.x, state.certified.x])
    assert both.unique(dim=0).shape == problem.train.x.unique(dim=0).shape


def test_bound_is_above_the_risk_and_below_one():
    for seed in range(4):
        problem, _ = load("two_moons", seed=seed, n_train=400, n_test=2000, noise=0.1)
        inference, state, _ = fit_bound(problem, seed, 160)
        scores = inference.posterior(state).scores()
        assert scores["gibbs_risk"] < scores["pac_bound"] < 0.45
        assert scores["gibbs_risk_train"] < scores["pac_bound"]


def coin_flips(n, seed):
    """Unpredictable labels: the risk of every classifier is ½."""
    problem = classes(n=n, n_inputs=5, n_classes=2)
    y = torch.randint(0, 2, (n, 1), generator=generator(seed))
    return replace(problem, train=replace(problem.train, y=y))


def test_prior_fitted_to_the_rows_of_the_bound_breaks_it():
    for seed in range(3):
        inference, state, _ = fit_bound(
            coin_flips(40, seed), seed, 300, widths=(50,), prior_steps=300, prior_std=1e-3
        )
        assert inference.bound(state)["pac_bound"] > 0.5
        cheated = replace(state, certified=state.prior_rows)
        assert inference.bound(cheated)["pac_bound"] < 0.5


def test_risks_count_errors():
    problem = classes(n=30, n_inputs=2, n_classes=3)
    _, state, _ = fit_bound(problem, 1, 5, draws=7)
    theta = state.q.draw(7, generator(3))
    wrong = 0
    for row in theta:
        logits = state.q.network.outputs(row[None], problem.train.x)[0, :, 0]
        wrong += int((logits.argmax(-1) != problem.train.y[:, 0]).sum())
    assert gibbs_risk(state.q, problem.train, 7, 3) == wrong / (7 * 30)


def test_invalid_settings_are_refused():
    with pytest.raises(ValidationError, match=r"prior_steps: 5 steps .* 0 .*; set both above 0"):
        component("inference", "pac_bayes", prior_share=0.0, prior_steps=5)
    with pytest.raises(ConfigMismatchError, match=r"prior_share=0\.9: leaves 3 of 30 .*; lower it"):
        fit_bound(classes(n=30, n_inputs=2, n_classes=2), 0, 1, prior_share=0.9)
    _, state, _ = fit_bound(
        classes(n=30, n_inputs=2, n_classes=2), 0, 2, prior_share=0.0, prior_steps=0
    )
    assert state.prior_rows is None
    assert state.certified.n_rows == 30
