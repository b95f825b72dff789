"""Collapsed Gibbs sampling of topics compared with enumeration of all assignments of a small
corpus."""

import pytest
import torch
from support.runs.configured import component, generator, load, uniform
from support.small.small_corpora import assignments, corpus, lda, log_urns, small_bars, words_of
from support.small.small_problems import check_resumed, train
from torch.nn.functional import one_hot
from torch.testing import assert_close

from components.topics.lda_collapsed_gibbs import log_joint
from components.topics.maths.collapsed import sweep
from runner.execution.rng import Streams

ROWS = ([0, 0, 1], [], [1, 2], [2, 2])
K = 2
TOTALS = torch.tensor([len(row) for row in ROWS])


@pytest.fixture
def model():
    return lda(corpus(ROWS), K, alpha=0.4, eta=0.7)


def together(z):
    """Pairs of words with the same topic, for any order of topics: [..., M] -> [..., M, M]."""
    return (z[..., :, None] == z[..., None, :]).double()


def test_joint_law_equals_that_of_filling_urns(model):
    words, docs = words_of(ROWS)
    for z in list(assignments(len(words), K))[::9]:
        log_p = log_joint(words, TOTALS, torch.tensor(z), model.alpha, model.eta)
        assert_close(
            float(log_p), log_urns(words.tolist(), docs.tolist(), z, model.alpha, model.eta)
        )


def enumerate_posterior(model):
    """All assignments [A, M], and their probabilities [A]."""
    words, docs = words_of(ROWS)
    every = torch.tensor(list(assignments(len(words), K)))
    log_p = torch.tensor(
        [log_urns(words.tolist(), docs.tolist(), z, model.alpha, model.eta) for z in every.tolist()]
    )
    return every, log_p.double().softmax(0)


def test_tomotopy_agrees_with_the_exact_posterior(model):
    """E Σ_k n_kv² from the last sweeps of 600 seeds."""
    pytest.importorskip("tomotopy")
    every, p = enumerate_posterior(model)
    n = one_hot(every).mT.double() @ one_hot(words_of(ROWS)[0]).double()  # [A, K, V]
    fit = component("inference", "lda_tomotopy", sweeps=30).fit
    lam = torch.stack([fit(model, corpus(ROWS).train, seed) for seed in range(600)])
    squares = (lam - 0.7).square().sum(1)
    errors = squares.mean(0) - p @ n.square().sum(1)
    assert (errors / squares.std(0)).abs().max() < 4.5 / 600**0.5


def test_sampler_agrees_with_the_exact_posterior(model):
    """p(z_i = z_j | y) and log p(y, z) over all 2⁷ assignments, compared with 6,000 sweeps in 100
    batches."""
    words, _ = words_of(ROWS)
    every, p = enumerate_posterior(model)
    exact = torch.einsum("a,aij->ij", p, together(every))
    g = generator(0)
    z = torch.randint(K, (len(words),), generator=g)
    chain = []
    for u in uniform(g, 6_000, len(words)):
        z = sweep(words, TOTALS, z, u, model.alpha, model.eta)
        chain.append(z)
    frequency = together(torch.stack(chain)).view(100, -1, *exact.shape).mean(1)  # [100, M, M]
    upper = torch.ones_like(exact).triu(1) > 0
    z_scores = ((frequency.mean(0) - exact) / (frequency.std(0) / 10))[upper]
    assert z_scores.abs().max() < 4.5
    assert z_scores.square().mean() < 3
    assert float(exact[upper].max() - exact[upper].min()) > 0.2, (
        "there is something to be wrong about"
    )


def run(problem, model, steps, **keys):
    inference = component("inference", "lda_collapsed_gibbs", **keys)
    return inference, train(inference, model, problem, steps)[0]


def test_kept_draws_have_their_moments(model):
    inference, state = run(corpus(ROWS), model, 9, burn_in=4, thinning=2, starts=3)
    assert len(state.kept) == 2
    assert state.z.shape == (1, 7)
    posterior = inference.posterior(state)
    n = state.kept.rows[1].T.double()  # [K, V]
    assert_close(posterior.topics[1], (n + 0.7) / (n.sum(1, keepdim=True) + 2.1))
    assert n.sum() == 7


def test_likeliest_start_continues(model):
    inference, state = run(corpus(ROWS), model, 4, burn_in=4, starts=5)
    words, _ = words_of(ROWS)
    joint = [float(log_joint(words, TOTALS, z, model.alpha, model.eta)) for z in state.z]
    best = state.z[joint.index(max(joint))]
    rng = Streams(1)
    u = uniform(Streams(1).noise, 1, 7)[0]
    after, _ = inference.step(state, corpus(ROWS).train, rng)
    assert torch.equal(after.z[0], sweep(words, TOTALS, best, u, model.alpha, model.eta))


@pytest.mark.parametrize("stop", [2, 3, 4])
def test_stopped_run_resumes_bit_identically(tmp_path, stop):
    inference = component("inference", "lda_collapsed_gibbs", burn_in=3, thinning=1)
    model = component("model", "lda", n_topics=6)
    check_resumed(inference, model, small_bars(n_train=15), tmp_path, 6, stop)


@pytest.mark.slow
def test_bars_are_recovered():
    problem, rng = load("bars", 0)
    inference, state = run(problem, lda(problem, 10, 0.1, 0.1), 300)
    scores = problem.score(inference.posterior(state), rng)
    assert scores["perplexity"] < scores["perplexity_truth"] + 0.037
    assert scores["topic_distance"] < 0.02
