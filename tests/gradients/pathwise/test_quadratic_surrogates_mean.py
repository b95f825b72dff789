"""The mean of control variates that are gradients of quadratic surrogates, and refused tables."""

import copy

import pytest
import torch
from support.runs.configured import component, generator
from support.small.unlabelled_problems import exact_elbo, ppca, real_rows
from support.targets.pathwise_models import (
    estimates,
    exact,
    flat,
    logistic,
    pick_batch,
    z_score,
)
from torch import nn
from torch.autograd import grad

from components.contracts.problems import Rows
from components.errors import ConfigMismatchError
from components.gradients.pathwise.surrogate import Derivatives
from components.inference.rowwise_log_joint import RowwiseLogJoint
from runner.execution.rng import Streams

COMPARED = [("taylor_cv", {}), ("taylor_cv", {"scale": "local"}), ("quadratic_cv", {"lr": 0.3})]


@pytest.mark.parametrize(
    ("n_samples", "steps"), [(1, 100), pytest.param(10, 10_000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("name", "changes"), COMPARED)
@pytest.mark.parametrize("which", ["posterior", "guide"])
def test_surrogate_gradients_are_unbiased(which, name, changes, n_samples, steps):
    if which == "posterior":
        problem, module = logistic()
        batch = problem.train
        expected = exact(module, problem.train)
    else:
        problem = real_rows(n=12)
        module = ppca(problem, exact_guide=False)
        batch = problem.train
        expected = flat(grad(exact_elbo(module, batch.x), list(module.parameters())))
    estimator = component("gradient", name, n_samples=n_samples, **changes)
    assert z_score(estimates(estimator, module, batch, steps), expected) < 4.2


def shuffled_z_scores(repeats, steps):
    """Largest z-score of the estimates at each of the first steps, over new tables and new orders
    of 6 rows, two per step."""
    problem, q = logistic("shared")
    estimator = component("gradient", "joint_cv")
    rng = Streams(0)
    g = generator(0)
    start = copy.deepcopy(q.state_dict())
    results = []
    means = []
    for _ in range(repeats):
        q.load_state_dict(start)
        state = estimator.init(q, rng)
        found_here = []
        order = torch.cat([torch.randperm(6, generator=g) for _ in range(3)])
        for step in range(steps):
            rows = tuple(order[2 * step : 2 * step + 2].tolist())
            if len(means) < steps:
                means.append(exact(q, problem.train))
            gradients, _, state = estimator.estimate(q, pick_batch(problem, rows), rng, state)
            found_here.append(flat(gradients))
            q.mean.data.add_(0.3)  # as in training: old and new entries differ
        results.append(torch.stack(found_here))
    return [z_score(d, m) for d, m in zip(torch.stack(results, 1), means, strict=True)]


@pytest.mark.parametrize(
    ("repeats", "steps"), [(60, 6), pytest.param(5000, 8, marks=pytest.mark.slow)]
)
def test_tables_are_unbiased_in_shuffled_passes(repeats, steps):
    """Within the first pass, in which a running sum would count rows twice, and within the
    second."""
    assert all(score < 4.2 for score in shuffled_z_scores(repeats, steps))


def test_surrogates_are_independent_of_noise():
    """Only first steps, in which Adam changes v by its full rate, so that a dependence on the same
    noise would be visible."""
    problem, q = logistic()
    estimator = component("gradient", "quadratic_cv", lr=1.0)
    rng = Streams(0)
    state = estimator.init(q, rng)
    draws = [
        flat(estimator.estimate(q, problem.train, rng, copy.deepcopy(state))[0]) for _ in range(300)
    ]
    assert z_score(torch.stack(draws), exact(q, problem.train)) < 4


def test_impossible_tables_are_refused():
    problem, q = logistic()
    estimator = component("gradient", "joint_cv")
    state = estimator.init(q, Streams(0))
    for batch in (problem.train.part(torch.tensor([1]), 6.0), Rows(torch.zeros(1, 0), 1.0)):
        with pytest.raises(
            ConfigMismatchError, match="batches do not have; use gradient=taylor_cv"
        ):
            estimator.estimate(q, batch, Streams(0), state)
    q.target = RowwiseLogJoint(q.target.model)
    with pytest.raises(ConfigMismatchError, match="there are no rows; use gradient=taylor_cv"):
        estimator.init(q, Streams(0))
    q.target = RowwiseLogJoint(q.target.model, 2, 10**9)
    with pytest.raises(
        ConfigMismatchError, match="would have 4000000000 numbers; use gradient=taylor_cv"
    ):
        estimator.init(q, Streams(0))


def test_affine_functions_have_zero_curvature():
    class Affine(nn.Module):
        def rows_at(self, batch, theta):
            return theta.sum(-1)

    d = Derivatives(Affine(), Rows(torch.zeros(2, 1), 1.0), torch.zeros(1, 2, 3))
    assert torch.equal(d.times(torch.ones(1, 2, 3)), torch.zeros(1, 2, 3))
    assert torch.equal(d.slope, torch.ones(1, 2, 3))
