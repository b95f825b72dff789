"""Control variates from quadratic surrogates: published equations, mean, and remaining noise."""

import copy

import numpy as np
import pytest
import torch
from support.runs.configured import F64, component, draw_normal, generator, normal
from support.small.small_problems import real
from support.targets.pathwise_models import (
    estimate,
    estimates,
    exact,
    expand_row,
    flat,
    logistic,
    nodes,
    pick_batch,
    regression,
    spread_out,
)
from torch.autograd import grad
from torch.testing import assert_close

from components.contracts.problems import Batch, Rows
from components.gradients.pathwise.bound import whole_gradient
from components.gradients.pathwise.surrogate import Derivatives, apply_affine, mean_path, path
from runner.execution.rng import Streams


@pytest.mark.parametrize("full", [True, False])
def test_mean_path_matches_quadrature(full):
    """E[∂θ(ε)ᵀ r(ε)] of an affine r, by quadrature."""
    _, q = logistic(full=full)
    points, weight = nodes(2, 4)
    g = generator(2)
    a = normal(g, 1, 2)
    C = normal(g, 1, 2, 2)
    ends = q.location_scale(Rows(torch.zeros(1, 0), 1.0))
    parameters = list(q.parameters())
    expected = torch.zeros(sum(p.numel() for p in parameters), dtype=F64)
    for e, w in zip(points, weight, strict=True):
        r = a + C[0] @ e
        gradients = grad(path(ends, e[None, None], r[None]), parameters, retain_graph=True)
        expected += w * flat(gradients)
    gradients = grad(mean_path(ends, a, C), parameters, retain_graph=True)
    assert_close(flat(gradients), expected)
    assert_close(apply_affine(ends, points[:, None])[:, 0], q.transform(points))


def test_derivatives_match_autograd():
    problem, q = logistic()
    batch = pick_batch(problem)
    theta = draw_normal(2, 3, 2)
    v = draw_normal(2, 3, 2, seed=1)
    d = Derivatives(q, batch, theta)
    derivatives = Derivatives(q, batch, theta[:1])
    L = draw_normal(3, 2, 2, seed=2)
    for b in range(3):
        slope, H = expand_row(q, batch, b, theta[0, b])
        for s in range(2):
            _, H_s = expand_row(q, batch, b, theta[s, b])
            assert_close(d.times(v)[s, b], H_s @ v[s, b])
        assert_close(derivatives.columns(L)[b], H @ L[b])
        assert_close(derivatives.slope[0, b], slope)
    summed = Derivatives(q, batch, theta[:, :1])  # of all rows at one θ
    assert_close(
        summed.slope[0, 0], sum(Derivatives(q, batch, theta[:1, :1].expand(1, 3, 2)).slope[0])
    )


def literal_estimate(q, batch, noise, slopes):
    """Σ_b S⁻¹ Σ_s {∂θ(ε_sb)ᵀ r_b(ε_sb) − E[∂θ(ε)ᵀ r_b(ε)]} for slopes r_b of (b, ε [K, D]), the
    mean by quadrature."""
    points, weight = nodes(q.noise_dim, 4)

    def product(b, e):
        return (q.transform(e) * slopes(b, e)).sum(-1)

    terms = [
        product(b, noise[:, b]).mean() - weight @ product(b, points) for b in range(batch.n_rows)
    ]
    return flat(grad(sum(terms), list(q.parameters())))


@pytest.mark.parametrize(("noise", "full"), [("rows", True), ("shared", True), ("rows", False)])
def test_taylor_estimate_matches_published_equation(noise, full):
    problem, q = logistic(noise, full)
    batch = pick_batch(problem)
    m = q.mean.detach()
    L = q.scale_tril.detach()
    epsilon = q.draw_noise(batch, 2, Streams(0).noise)
    plain, _ = whole_gradient(q, batch, epsilon)

    def slopes(b, e):
        slope, H = expand_row(q, batch, b, m)
        return slope + e @ (H @ L).T

    expected = flat(plain) - batch.scale * literal_estimate(q, batch, epsilon, slopes)
    actual, terms, _ = component("gradient", "taylor_cv", n_samples=2).estimate(
        q, batch, Streams(0), None
    )
    assert_close(flat(actual), expected)
    assert set(terms) == {"elbo", "kl"}


def test_local_estimate_fixes_slope_for_scale():
    """For m the first-order expansion; for L the slope at m times ε, with mean 0."""
    problem, q = logistic()
    batch = pick_batch(problem)
    first, _, _ = component("gradient", "taylor_cv").estimate(q, batch, Streams(0), None)
    local, _, _ = component("gradient", "taylor_cv", scale="local").estimate(
        q, batch, Streams(0), None
    )
    assert_close(first[0], local[0])
    epsilon = q.draw_noise(batch, 1, Streams(0).noise)[0]
    plain, _ = whole_gradient(q, batch, epsilon[None])
    slope = Derivatives(q, batch, q.mean.expand(1, 3, 2)).slope[0]
    outer = batch.scale * torch.einsum("bi,bj->ij", slope, epsilon)
    expected = plain[1] - outer.diagonal() * q.log_std.detach().exp()
    assert_close(local[1], expected)
    assert_close(local[2], plain[2] - outer[1, :1])


@pytest.mark.parametrize("curvature", ["full", "diagonal"])
def test_learnt_estimate_matches_published_equation(curvature):
    problem, q = logistic()
    batch = pick_batch(problem)
    L = q.scale_tril.detach()
    estimator = component("gradient", "quadratic_cv", n_samples=2, curvature=curvature)
    state = estimator.init(q, Streams(0))
    spread_out(state.control)
    b = state.control.b.detach().clone()
    A = state.control.curvature.detach().clone()
    assert torch.equal(A, A.T)
    epsilon = q.draw_noise(batch, 2, Streams(0).noise)
    plain, _ = whole_gradient(q, batch, epsilon)
    taken = batch.scale * literal_estimate(q, batch, epsilon, lambda row, e: b + e @ (A @ L).T)
    actual = estimate(estimator, q, batch, state=state)
    assert_close(actual, flat(plain) - taken)


def test_surrogate_descends_squared_difference():
    """∇_v ‖ĝ − C_v‖² by differences, against the sign of Adam's first step."""
    problem, q = logistic()
    batch = pick_batch(problem)
    estimator = component("gradient", "quadratic_cv", lr=1e-3)
    start = estimator.init(q, Streams(0))
    spread_out(start.control)

    def square(change):
        state = copy.deepcopy(start)
        state.control.b.data.add_(torch.tensor([change, 0.0]))
        return float(estimate(estimator, q, batch, state=state).square().sum())

    state = copy.deepcopy(start)
    estimator.estimate(q, batch, Streams(0), state)
    moved_by = float((state.control.b - start.control.b).detach()[0])
    # the estimate contains ∇KL too, which is constant in v: the signs agree if C changes
    with_kl = square(1e-5) - square(-1e-5)
    assert moved_by == pytest.approx(-1e-3 * np.sign(with_kl), rel=1e-4)


def test_joint_estimate_matches_published_equation():
    """Tables after a pass, with entries for half of the rows, at a q that has changed since."""
    problem, q = logistic("rows")
    estimator = component("gradient", "joint_cv", n_samples=2)
    rng = Streams(0)
    state = estimator.init(q, rng)
    for rows in ((0, 3), (5, 1)):
        _, _, state = estimator.estimate(q, pick_batch(problem, rows), rng, state)
    assert not state.used.known.any()  # the pass continues
    state.used = copy.deepcopy(state.filled)
    state.h = state.filled.h.sum(0)
    state.H = state.filled.H.sum(0)
    then = q.mean.detach().clone()
    spread_out(q, 3)
    m = q.mean.detach()
    L = q.scale_tril.detach()
    batch = pick_batch(problem, (3, 4, 0))

    def expansion(n, around):
        slope, H = expand_row(q, problem.train, n, around)
        return slope - H @ around, H

    table = {n: expansion(n, then) for n in (0, 1, 3, 5)}
    points, weight = nodes(2, 4)

    def product(h, H, e):
        return (q.transform(e) * (h + (m + e @ L.T) @ H.T)).sum(-1)

    def mean(h, H):
        return weight @ product(h, H, points)

    epsilon = q.draw_noise(batch, 2, Streams(5).noise)
    plain, _ = whole_gradient(q, batch, epsilon)
    taken = sum(mean(*pair) for pair in table.values())
    for b, n in enumerate((3, 4, 0)):
        pair = table.get(n) or expansion(n, m)
        moment = 0 if n in table else mean(*pair)
        taken = taken - batch.scale * (product(*pair, epsilon[:, b]).mean() - moment)
    expected = flat(plain) + flat(grad(taken, list(q.parameters())))
    assert_close(estimate(estimator, q, batch, 5, state), expected)


@pytest.mark.parametrize("noise", ["rows", "shared"])
def test_expansion_is_exact_for_quadratic_log_joint(noise):
    problem, q = regression(noise)
    batch = pick_batch(problem)
    expected = exact(q, batch, 4)
    for seed in range(3):
        actual = estimate(component("gradient", "taylor_cv"), q, batch, seed)
        assert_close(actual, expected)


@pytest.mark.parametrize("noise", ["rows", "shared"])
def test_one_pass_is_exact_for_quadratic_log_joint(noise):
    """Exact gradient of all rows at the current q, for any draws and any order of the rows."""
    problem, q = regression(noise)
    estimator = component("gradient", "joint_cv")
    rng = Streams(0)
    state = estimator.init(q, rng)
    for rows in ((0, 5), (3, 1), (7, 6), (2, 4)):
        _, _, state = estimator.estimate(q, pick_batch(problem, rows), rng, state)
        spread_out(q, 4)
    for rows in ((5, 2), (0, 1), (3,)):
        actual, _, state = estimator.estimate(q, pick_batch(problem, rows), rng, state)
        assert_close(flat(actual), exact(q, problem.train, 4))
        spread_out(q, 5)


def test_correct_surrogate_removes_all_noise():
    problem, q = regression("shared")
    estimator = component("gradient", "quadratic_cv")
    state = estimator.init(q, Streams(0))
    centre = Derivatives(q, problem.train, q.mean[None, None])  # of all rows' f
    with torch.no_grad():
        state.control.b.copy_(centre.slope[0, 0] / 8)
        state.control.a.copy_(centre.columns(torch.eye(3, dtype=F64)[None])[0] / 8)
    for seed in range(3):
        actual = estimate(estimator, q, problem.train, seed, copy.deepcopy(state))
        assert_close(actual, exact(q, problem.train, 4))


@pytest.mark.parametrize(("full", "curvature"), [(True, "full"), (False, "diagonal")])
def test_surrogate_learns_to_reduce_noise(full, curvature):
    problem, q = regression("shared", full)
    estimator = component("gradient", "quadratic_cv", lr=0.2, curvature=curvature)
    draws = estimates(estimator, q, problem.train, 220)
    assert float(draws[-80:].var(0).sum() / draws[:20].var(0).sum()) < 0.4


def test_minibatches_record_row_numbers():
    problem = real(n=7, n_tasks=1, missing=0.0, batch_size=3)
    for _, batch in problem.batches("minibatch", Streams(0), 0, 5):
        assert isinstance(batch, Batch)
        assert torch.equal(problem.train.x[batch.numbers], batch.x)
        assert torch.equal(batch.part(torch.tensor([2, 0]), 1.0).numbers, batch.numbers[[2, 0]])
    assert problem.train.numbers is None
    assert problem.held_out(0.3, Streams(0)).train.numbers is None
