"""Bayes actions, compared with brute-force minimisation of the posterior expected loss, summed draw
by draw."""

import itertools

import pytest
import torch
from support.runs.configured import F64, double, draw_normal, generator, normal, uniform

from components.contracts.predictive import Categorical, GaussianMixture
from components.posteriors import decisions as d
from components.posteriors import intervals
from components.posteriors.draws import Draws


def lopsided_samples(n=20):
    g = generator(0)
    weights = uniform(g, n)
    return d.Samples(normal(g, n, 2).exp(), weights / weights.sum())


def literal(loss, action, values, weights):
    """Σ_s w_s L(a, s) for one unknown."""
    return float(weights @ torch.stack([loss(action, s) for s in values]))


def mixture():
    mu = double([-1.0, 0.5, 3.0])[:, None, None]
    v = double([0.3, 1.0, 0.2])[:, None, None]
    return GaussianMixture(mu, v)


POINT = [d.Squared(), d.AbsoluteLoss(), d.Pinball(0.1), d.Pinball(0.8), d.ToleranceLoss(0.3)]


@pytest.mark.parametrize("loss", POINT, ids=str)
def test_point_actions_minimise_the_empirical_expected_loss(loss):
    belief = lopsided_samples()
    action = loss.act(belief)
    cost = loss.expected_loss(action, belief)
    for j in range(2):
        values = belief.values[:, j]
        exact = literal(loss, action[j], values, belief.weights)
        assert cost[j] == pytest.approx(exact, abs=1e-12)
        grid = torch.linspace(0, float(values.max()), 60, dtype=F64)
        tried = torch.cat([grid, values, values + 0.3, values - 0.3])
        best = min(literal(loss, a, values, belief.weights) for a in tried)
        assert float(cost[j]) <= best + 1e-10


@pytest.mark.parametrize(
    "loss", [d.Squared(), d.AbsoluteLoss(), d.Pinball(0.9), intervals.CentralInterval(0.2)], ids=str
)
def test_predictive_actions_agree_with_numerical_integration(loss):
    belief = mixture()
    y = torch.linspace(-8, 10, 18_001, dtype=F64)
    density = belief.log_prob(y[:, None]).exp()[:, 0]

    def integral(action):
        return float(torch.trapezoid(loss(action, y) * density, y))

    action = loss.act(belief).squeeze()
    shaped = action.reshape(2, 1, 1) if action.ndim else action.reshape(1, 1)
    cost = integral(action)
    assert float(loss.expected_loss(shaped, belief)) == pytest.approx(cost, abs=1e-6)
    steps = double([-0.05, -0.01, 0.0, 0.01, 0.05])
    moves = torch.cartesian_prod(steps, steps) if action.ndim else steps
    assert all(integral(action + move) > cost - 1e-9 for move in moves)


def test_intervals_are_optimal_over_all_pairs_of_draws():
    belief = lopsided_samples(15)
    for loss in (
        intervals.CentralInterval(0.2),
        intervals.DensestInterval(0.25),
        intervals.DensestInterval(0.02),
    ):
        action = loss.act(belief)  # [2, d]
        cost = loss.expected_loss(action, belief)
        for j in range(2):
            values = belief.values[:, j]
            ends = [(a, b) for a in values for b in values if a <= b]
            costs = {pair: literal(loss, pair, values, belief.weights) for pair in ends}
            assert float(cost[j]) == pytest.approx(min(costs.values()), abs=1e-10)


def test_densest_interval_is_a_level_set_of_a_gaussian():
    # quantiles of N(0, 1)
    z = torch.special.ndtri(torch.linspace(0.0, 1.0, 40_003, dtype=F64)[1:-1])[:, None]
    belief = d.Samples(z, torch.full((len(z),), 1 / len(z), dtype=F64))
    low, high = intervals.DensestInterval(0.1).act(belief)
    edge = (-2 * double(0.1 * (2 * torch.pi) ** 0.5).log()).sqrt()  # density 0.1
    assert torch.allclose(torch.cat([low, high]), torch.stack([-edge, edge]), atol=0.02)


def test_classification_with_costs_matches_enumeration():
    logits = draw_normal(4, 6, 1, 3)
    belief = Categorical(logits)
    # the last: "ask somebody"
    cost = double([[0, 1, 5], [2, 0, 1], [1, 3, 0], [0.6, 0.6, 0.6]])
    loss = d.CostMatrixLoss(cost)
    action = loss.act(belief)
    expected = belief.probs @ cost.T  # [B, 1, A]
    assert torch.equal(action, expected.argmin(-1))
    assert torch.allclose(loss.expected_loss(action, belief), expected.amin(-1))
    assert torch.equal(d.CostMatrixLoss.zero_one(3).act(belief), belief.probs.argmax(-1))


def test_false_negative_costs_shift_the_threshold():
    """Two classes: predict 1 exactly if p₁/p₀ > cost(1|0)/cost(0|1)."""
    p = torch.linspace(0.013, 0.987, 99, dtype=F64)
    loss = d.CostMatrixLoss(double([[0, 9], [1, 0]]))
    assert torch.equal(loss.act(torch.stack([1 - p, p], -1)) == 1, p / (1 - p) > 1 / 9)


def test_model_choice_uses_posterior_odds():
    log_evidence = torch.tensor([-101.0, -100.0])
    log_prior = torch.tensor([0.9, 0.1]).log()
    p = d.model_probabilities(log_evidence, log_prior)
    odds = torch.exp(log_evidence[0] - log_evidence[1]) * 9
    assert torch.allclose(p[0] / p[1], odds)
    assert int(d.CostMatrixLoss.zero_one(2).act(p)) == 0
    assert int(d.CostMatrixLoss.zero_one(2).act(d.model_probabilities(log_evidence))) == 1


def test_bayes_rule_is_optimal_over_all_rules():
    """(2.4): the rule that acts on each posterior beats every other rule on the joint distribution
    of (s, y)."""
    # p(s, y): two states, three observations
    joint = double([[0.1, 0.2, 0.05], [0.15, 0.05, 0.45]])
    u = double([[1.0, 0.0], [-0.5, 2.0]])  # u[action, state]

    def utility(rule):
        return float((joint * u[list(rule)].T).sum())

    best = max(itertools.product(range(2), repeat=3), key=utility)
    posterior = (joint / joint.sum(0)).T  # [y, s]
    assert tuple(d.CostMatrixLoss(-u).act(posterior).tolist()) == best


def test_draws_are_weighted_and_in_their_own_units():
    theta = draw_normal(2, 5, 1)

    class Positive:
        def constrain(self, theta):
            return theta.exp()

    draws = Draws(theta, theta[:, 0], ["scale"], Positive())
    assert torch.allclose(d.Squared().act(d.to_samples(draws)), theta.exp().mean((0, 1)))
    log_weights = torch.full((2, 5), -1e3, dtype=F64)
    log_weights[1, 3] = 0.0
    weighted = Draws(theta, theta[:, 0], ["scale"], Positive(), log_weights=log_weights)
    for loss in (d.Squared(), d.AbsoluteLoss(), d.Pinball(0.01)):
        assert torch.allclose(loss.act(d.to_samples(weighted)), theta[1, 3].exp())
