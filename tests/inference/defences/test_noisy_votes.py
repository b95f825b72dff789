"""Votes under noise: counts, draws and derivative."""

import pytest
import torch
from smoothed_networks import linear, rest, train_smoothed
from support.runs.configured import normal
from support.small.small_problems import classes
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from components.posteriors import noisy_votes
from components.posteriors.noisy_votes import SmoothedNetwork, vote_logits
from runner.execution.rng import Streams


# votes
def test_votes_decide_and_mean_probability_breaks_ties():
    """Three draws of four classes: first 2 votes against 1; then 1, 1, 1 and the mean of
    softmax."""
    f = torch.tensor([[5.0, 0, 0, 0], [0, 0.1, 0, 0], [0, 0.1, 0, 0]]).double()[:, None, None]
    p = vote_logits(f).exp()[0, 0]
    mean = f.softmax(-1).mean(0)[0, 0]
    assert int(mean.argmax()) == 0  # the mean would predict another class
    assert_close(p, (torch.tensor([1.0, 2, 0, 0]) + mean) / 4)
    ties = torch.tensor([[1.0, 0, 0, 0], [0, 3.0, 0, 0], [0, 0, 2.0, 0]]).double()[:, None, None]
    assert int(vote_logits(ties).argmax()) == 1


def test_votes_use_noise_of_generator():
    problem = classes(n=20)
    posterior, _ = train_smoothed(problem, 30)
    x = problem.test.x
    eta = normal(Streams(4).attack, 40, *x.shape)
    with torch.no_grad():
        f = torch.stack([posterior.network(x + 0.25 * each) for each in eta])
    logits = posterior.predict(x, Streams(4).attack).logits
    assert_close(logits[0], vote_logits(f))


def test_blocks_of_draws_keep_votes(monkeypatch):
    problem = classes(n=20)
    posterior, _ = train_smoothed(problem, 30)
    x = problem.test.x
    whole = posterior.predict(x, Streams(4).attack).logits
    radius = posterior.certify(x, Streams(4).attack).radius
    monkeypatch.setattr(noisy_votes, "ROWS", 20 * 7)  # seven draws at a time
    assert_close(posterior.predict(x, Streams(4).attack).logits, whole)
    assert torch.equal(posterior.certify(x, Streams(4).attack).radius, radius)


@pytest.mark.parametrize("criterion", ["cross_entropy", "margin"])
def test_analytic_derivative_matches_autograd(criterion):
    problem = classes(n=20, n_tasks=2)
    posterior, _ = train_smoothed(problem, 30)
    x = problem.test.x
    y = problem.test.y
    by_graph = SmoothedNetwork(Plain(posterior.network), **rest(posterior))
    slopes = [
        Attacked(each, (0, 1)).input_gradient(x, y, Streams(0).attack, criterion)
        for each in (posterior, by_graph)
    ]
    assert by_graph.reverse(x, Streams(0).attack) is None
    assert slopes[0].abs().max() > 1e-4
    assert_close(*slopes)


class Plain:
    """Network without a reverse pass."""

    def __init__(self, network):
        self.network = network

    def __call__(self, x):
        return self.network(x)


def test_unanimous_votes_follow_mean_probability():
    """∇ log p(y) of unanimous votes is parallel to ∇ log p̄_y / (S + 1)."""
    problem = classes(n=40, n_classes=2)
    posterior, w, _ = linear(problem, sigma=0.01)
    x = problem.test.x
    y = problem.test.y
    logits = posterior.predict(x, Streams(0).attack)
    unanimous = (logits.probs[..., 0, :].amax(-1) * 51 > 50) & (logits.guess == y)[:, 0]
    assert unanimous.sum() > 10
    slope = Attacked(posterior).input_gradient(x, y, Streams(0).attack)[unanimous]
    cosine = (slope @ w) / (slope.norm(dim=1) * w.norm())
    sign = y[unanimous, 0].double() * 2 - 1
    assert_close(cosine, sign)
