"""Collapsed Gibbs sampling and split–merge moves compared with all partitions of a few rows."""

import math

import numpy as np
import pytest
import torch
from support.runs.configured import component, generator, load
from support.small.small_partitions import log_joint, partitions, small_rows
from support.small.small_problems import advance

from components.contracts.problems import Rows
from components.contracts.roles import FinishedRun
from components.errors import ConfigMismatchError
from components.inference.partitions.crp_sweep import count_uniforms, init_clusters, sweep
from components.inference.partitions.partition_draws import PartitionDraws
from components.maths.exponential.normal_wishart import NormalWishart
from components.posteriors.partitions import relabel_by_appearance
from components.problems.unlabelled import Unlabelled
from runner.execution.rng import Streams

ALPHA = 0.8
X, PRIOR = small_rows()


class Process:
    """A Dirichlet process without other members."""

    concentration = ALPHA
    prior = PRIOR


def numbers(x=X, prior=PRIOR):
    return init_clusters(
        (x - prior.m).numpy(), ALPHA, prior.V.numpy(), float(prior.beta), float(prior.nu)
    )


def exact(x=X):
    """Numbers of all partitions, their posterior probabilities, and log p(x)."""
    every = list(partitions(len(x)))
    log_p = np.array([log_joint(z, x.numpy(), ALPHA, PRIOR) for z in every])
    evidence = float(np.logaddexp.reduce(log_p))
    return {z: i for i, z in enumerate(every)}, np.exp(log_p - evidence), evidence


def frequencies(moves, scans, chains=200, sweeps=80, burn_in=20):
    """Share of steps that each chain spent at each partition [C, partitions]."""
    places, p, _ = exact()
    rng = np.random.default_rng(0)
    table = numbers()
    z = np.zeros((chains, len(X)), np.int64)
    counts = np.zeros((chains, len(p)))
    for t in range(sweeps):
        u = rng.random((chains, count_uniforms(len(X), moves, scans)))
        sweep(table, z, u, moves, scans)
        if t >= burn_in:
            for chain, labels in enumerate(relabel_by_appearance(z)):
                counts[chain, places[tuple(labels.tolist())]] += 1
    return counts / (sweeps - burn_in)


# many split moves leave little for the sweep
@pytest.mark.parametrize(("moves", "scans"), [(0, 0), (20, 0), (2, 3)])
def test_partition_frequencies_match_probabilities(moves, scans):
    _, p, _ = exact()
    frequency = frequencies(moves, scans)
    error = frequency.std(0, ddof=1) / len(frequency) ** 0.5
    often = p > 2e-3
    assert often.sum() > 30
    z = (frequency.mean(0) - p)[often] / error[often]
    assert np.abs(z).max() < 4
    assert (z**2).mean() < 2  # chains are independent: χ² over its degrees of freedom


def test_log_joint_and_predictive_match_formulas():
    rng = np.random.default_rng(1)
    z = rng.integers(0, 3, (5, len(X)))
    z = relabel_by_appearance(z)
    table = numbers()
    value, _ = sweep(table, z, rng.random((5, count_uniforms(len(X), 2, 2))), 2, 2)
    for labels, counts in zip(z, value, strict=True):
        assert counts == pytest.approx(log_joint(tuple(labels.tolist()), X.numpy(), ALPHA, PRIOR))
        assert sorted(set(labels.tolist())) == list(range(labels.max() + 1))  # no gap in the labels
    every = NormalWishart(PRIOR.m[None], PRIOR.beta[None], PRIOR.V[None], PRIOR.nu[None])
    one_more = every.posterior(torch.ones(1, 3, dtype=X.dtype), X[:3]).log_predictive(X[3:4])
    ratio = log_joint((0, 0, 0, 0), X[:4].numpy(), ALPHA, PRIOR) - log_joint(
        (0, 0, 0), X[:3].numpy(), ALPHA, PRIOR
    )
    assert float(one_more) == pytest.approx(ratio - math.log(3 / (ALPHA + 3)))


def sample_posterior(steps, **keys):
    """A posterior of the small rows, with the last held out."""
    problem = Unlabelled("small", "real", Rows(X[:5], 1.0), Rows(X[5:], 1.0), None)
    inference = component(
        "inference",
        "crp_gibbs",
        **{"chains": 40, "burn_in": 20, "split_merge": 1, "scans": 2} | keys,
    )
    rng = Streams(0)
    state = inference.init(Process(), problem, rng)
    for _, batch in problem.batches(inference.requires.batch_kind, rng, 0, steps):
        state, info = inference.step(state, batch, rng)
        assert all(math.isfinite(float(v)) for v in info.values())
    return inference.posterior(state), problem


def test_predictive_density_is_ratio_of_evidences():
    result, problem = sample_posterior(60)
    _, p, evidence = exact(X[:5])
    more = exact(X)[2]
    distinct, which = np.unique(result.labels, axis=0, return_inverse=True)
    each = torch.stack(
        [result._log_predictive_by_cluster(z, problem.test).logsumexp(0) for z in distinct]
    ).exp()[:, 0]
    by_chain = each[torch.as_tensor(which.ravel())].reshape(40, -1).mean(1)
    error = float(by_chain.std() / 40**0.5)
    assert abs(float(by_chain.mean()) - math.exp(more - evidence)) < 4 * error
    spaced = float(result.log_predictive(problem.test).exp())
    assert spaced == pytest.approx(math.exp(more - evidence), rel=0.05)
    shares = result.clusters(problem.test)
    assert shares.sum() == pytest.approx(1)
    k = np.array([max(z) + 1 for z in partitions(5)])
    of_chain = result.sizes.double().mean(1)
    assert abs(float(of_chain.mean()) - float(p @ k)) < 4 * float(of_chain.std()) / 40**0.5
    scores = result.scores()
    assert scores["rhat"] < 1.05
    assert 0 < scores["acceptance"] < 1


def test_partition_chains_pass_chain_checks():
    problem = Unlabelled("small", "real", Rows(X[:5], 1.0), Rows(X[5:], 1.0), None)
    inference = component("inference", "crp_gibbs")
    # two chains without a common state
    far = torch.tensor([0, 0, 0, 0, 0]), torch.tensor([0, 1, 2, 3, 4])
    z = torch.stack(far)[:, None].repeat(1, 10, 1)
    log_joint = torch.randn(2, 10, generator=generator(0), dtype=X.dtype)
    apart = PartitionDraws(ALPHA, PRIOR, X[:5], z, log_joint, "binder", 0.001)
    run = FinishedRun(problem, apart, inference, None, apart.scores(), [], Streams(0))
    verdicts = {check.name: check.passed for check in apart.checks(run)}
    assert verdicts.pop("R̂ is below 1.01") is False
    # few splits are accepted if clusters are small
    assert "enough proposals are accepted" not in verdicts


def test_burn_in_state_and_single_row_are_scored():
    result, problem = sample_posterior(2, chains=2)
    assert result.z.shape == (2, 1, 5)
    assert math.isfinite(problem.score(result, Streams(0))["nlpp"])
    single = Unlabelled("alone", "real", Rows(X[:1], 1.0), Rows(X[1:2], 1.0), None)
    inference = component("inference", "crp_gibbs", burn_in=0)
    rng = Streams(0)
    state = inference.init(Process(), single, rng)
    state, _ = inference.step(state, single.train, rng)
    assert inference.posterior(state).sizes.eq(1).all()
    nobody = Unlabelled("nobody", "real", Rows(X[:0], 1.0), Rows(X[1:2], 1.0), None)
    with pytest.raises(ConfigMismatchError, match="no training row"):
        inference.init(Process(), nobody, rng)


def test_held_out_density_matches_scikit_learn_mixture():
    from sklearn.mixture import BayesianGaussianMixture

    problem, rng = load("mixture_sim", n_train=150, n_test=400)
    model = component("model", "dp_mixture").build(problem, rng)
    inference = component("inference", "crp_gibbs", chains=2, burn_in=30)
    state = inference.init(model, problem, rng)
    state, _ = advance(inference, state, problem, rng, 0, 80)
    ours = problem.score(inference.posterior(state), rng)
    peer = BayesianGaussianMixture(
        n_components=20, random_state=0, n_init=2, max_iter=500, weight_concentration_prior=1.0
    )
    theirs = -peer.fit(problem.train.x.numpy()).score(problem.test.x.numpy())
    assert ours["nlpp"] < theirs + 0.03
    assert ours["ari"] > 0.9
