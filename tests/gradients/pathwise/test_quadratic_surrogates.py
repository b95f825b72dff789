"""Control variates that are gradients of quadratic surrogates: equations as printed, their mean,
and what they leave."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.runs.configured import F64, build_model, component, generator, normal
from support.small.small_problems import classes, real
from support.small.unlabelled_problems import exact_elbo, ppca, real_rows
from torch import nn
from torch.autograd import functional, grad
from torch.testing import assert_close

from components.contracts.problems import Batch, Rows
from components.errors import ConfigMismatchError
from components.gradients.pathwise.bound import whole_gradient
from components.gradients.pathwise.surrogate import Derivatives, apply_affine, mean_path, path
from components.inference.variational.global_gaussian import GlobalGaussian, RowwiseLogJoint
from runner.execution.rng import Streams


def flat(gradients):
    return torch.cat([g.flatten() for g in gradients])


def spread_out(q, seed=0):
    """q with a mean, scales and correlations of its own."""
    g = generator(seed)
    with torch.no_grad():
        for p in q.parameters():
            p.add_(0.4 * normal(g, p.shape))
    return q


def logistic(noise="rows", full=True, n=6, n_inputs=1):
    """Two classes, θ = (β_0, β_1): f_b = log σ(± x_bᵀ θ)."""
    problem = classes(n=n, n_inputs=n_inputs, n_classes=2)
    model = build_model("logistic_regression", problem, intercept_scale=1.0)
    q = GlobalGaussian(
        RowwiseLogJoint(model, n_inputs + 1, n),
        torch.zeros(n_inputs + 1, dtype=F64),
        0.8,
        full,
        noise,
    )
    return problem, spread_out(q)


def regression(noise="rows", full=True):
    """Linear regression: f_b is quadratic in θ."""
    problem = real(n=8, n_inputs=2, n_tasks=1, missing=0.0)
    model = build_model("linear_regression", problem, noise=0.25)
    q = GlobalGaussian(
        RowwiseLogJoint(model, 3, 8), torch.zeros(model.dim, dtype=F64), 0.5, full, noise
    )
    return problem, spread_out(q, 1)


def nodes(dimensions, points=12):
    """Gauss-Hermite points ε [K, D] and weights [K]: exact for polynomials up to degree 2·points −
    1."""
    at, weight = (torch.tensor(v) for v in np.polynomial.hermite_e.hermegauss(points))
    grid = torch.cartesian_prod(*[at] * dimensions).reshape(-1, dimensions)
    products = (
        torch.cartesian_prod(*[weight / weight.sum()] * dimensions).reshape(-1, dimensions).prod(1)
    )
    return grid, products


def exact(q, batch, points=40):
    """∇ of the bound of the batch's rows, each with N/B, by quadrature over ε."""
    at, weight = nodes(q.noise_dim, points)
    theta = q.transform(at)[:, None]
    value = batch.scale * (q.target.log_likelihood(theta, batch) * weight[:, None]).sum() - q.kl()
    return flat(grad(value, list(q.parameters())))


def some(problem, rows=(4, 1, 2)):
    chosen = torch.tensor(rows)
    return replace(problem.train.part(chosen, problem.n / len(rows)), numbers=chosen)


def expand_row(q, batch, row, around):
    """Slope [D] and Hessian [D, D] of f of one row, by torch."""
    part = batch.part(torch.tensor([row]), 1.0)

    def f(t):
        return q.rows_at(part, t[None, None])[0, 0]

    return functional.jacobian(f, around), functional.hessian(f, around)


def estimate(estimator, q, batch, seed=0, state=None):
    gradients, _, _ = estimator.estimate(q, batch, Streams(seed), state)
    return flat(gradients)


# ---- the equations
# ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("full", [True, False])
def test_what_a_path_has_in_the_mean(full):
    """E[∂θ(ε)ᵀ r(ε)] of an affine r, by quadrature."""
    _, q = logistic(full=full)
    at, weight = nodes(2, 4)
    g = generator(2)
    a, C = normal(g, 1, 2), normal(g, 1, 2, 2)
    ends = q.location_scale(Rows(torch.zeros(1, 0), 1.0))
    parameters = list(q.parameters())
    expected = torch.zeros(sum(p.numel() for p in parameters), dtype=F64)
    for e, w in zip(at, weight, strict=True):
        r = a + C[0] @ e
        found = grad(path(ends, e[None, None], r[None]), parameters, retain_graph=True)
        expected += w * flat(found)
    found = grad(mean_path(ends, a, C), parameters, retain_graph=True)
    assert_close(flat(found), expected)
    assert_close(apply_affine(ends, at[:, None])[:, 0], q.transform(at))


def test_derivatives_are_those_of_torch():
    problem, q = logistic()
    batch = some(problem)
    theta = normal(generator(0), 2, 3, 2)
    v = normal(generator(1), 2, 3, 2)
    d = Derivatives(q, batch, theta)
    one = Derivatives(q, batch, theta[:1])
    L = normal(generator(2), 3, 2, 2)
    for b in range(3):
        slope, H = expand_row(q, batch, b, theta[0, b])
        for s in range(2):
            _, H_s = expand_row(q, batch, b, theta[s, b])
            assert_close(d.times(v)[s, b], H_s @ v[s, b])
        assert_close(one.columns(L)[b], H @ L[b])
        assert_close(one.slope[0, b], slope)
    summed = Derivatives(q, batch, theta[:, :1])  # of all rows at one θ
    assert_close(
        summed.slope[0, 0], sum(Derivatives(q, batch, theta[:1, :1].expand(1, 3, 2)).slope[0])
    )


def by_hand(q, batch, noise, slopes, full):
    """Σ_b S⁻¹ Σ_s {∂θ(ε_sb)ᵀ r_b(ε_sb) − E[∂θ(ε)ᵀ r_b(ε)]} for slopes r_b of (b, ε), the mean by
    quadrature, in loops."""
    parameters = list(q.parameters())
    total = torch.zeros(sum(p.numel() for p in parameters), dtype=F64)
    at, weight = nodes(q.noise_dim, 4)

    def sent(b, e):
        """∂θ(ε)ᵀ r_b(ε)."""
        return flat(grad(q.transform(e) @ slopes(b, e), parameters))

    for b in range(batch.n_rows):
        mean = sum(w * sent(b, e) for e, w in zip(at, weight, strict=True))
        for s in range(len(noise)):
            total += (sent(b, noise[s, b]) - mean) / len(noise)
    return total


@pytest.mark.parametrize(("noise", "full"), [("rows", True), ("shared", True), ("rows", False)])
def test_the_taylor_estimate_is_the_one_printed(noise, full):
    problem, q = logistic(noise, full)
    batch, m, L = some(problem), q.mean.detach(), q.scale_tril.detach()
    epsilon = q.draw_noise(batch, 2, Streams(0).noise)
    plain, _ = whole_gradient(q, batch, epsilon)

    def slopes(b, e):
        slope, H = expand_row(q, batch, b, m)
        return slope + H @ L @ e

    expected = flat(plain) - batch.scale * by_hand(q, batch, epsilon, slopes, full)
    found, terms, _ = component("gradient", "taylor_cv", n_samples=2).estimate(
        q, batch, Streams(0), None
    )
    assert_close(flat(found), expected)
    assert set(terms) == {"elbo", "kl"}


def test_the_local_estimate_holds_the_slope_for_the_scale():
    """In m that of first order; in L the slope at m times ε, of mean 0."""
    problem, q = logistic()
    batch, D = some(problem), 2
    first, _, _ = component("gradient", "taylor_cv").estimate(q, batch, Streams(0), None)
    local, _, _ = component("gradient", "taylor_cv", scale="local").estimate(
        q, batch, Streams(0), None
    )
    assert_close(first[0], local[0])
    epsilon = q.draw_noise(batch, 1, Streams(0).noise)[0]
    plain, _ = whole_gradient(q, batch, epsilon[None])
    slope = Derivatives(q, batch, q.mean.expand(1, 3, D)).slope[0]
    outer = batch.scale * torch.einsum("bi,bj->ij", slope, epsilon)
    expected = plain[1] - outer.diagonal() * q.log_std.detach().exp()
    assert_close(local[1], expected)
    assert_close(local[2], plain[2] - outer[1, :1])


@pytest.mark.parametrize("curvature", ["full", "diagonal"])
def test_the_learnt_estimate_is_the_one_printed(curvature):
    problem, q = logistic()
    batch, m, L = some(problem), q.mean.detach(), q.scale_tril.detach()
    estimator = component("gradient", "quadratic_cv", n_samples=2, curvature=curvature)
    state = estimator.init(q, Streams(0))
    spread_out(state.surrogate)
    b, A = state.surrogate.b.detach().clone(), state.surrogate.curvature.detach().clone()
    assert torch.equal(A, A.T)
    epsilon = q.draw_noise(batch, 2, Streams(0).noise)
    plain, _ = whole_gradient(q, batch, epsilon)
    taken = batch.scale * by_hand(q, batch, epsilon, lambda row, e: b + A @ (m + L @ e - m), True)
    found = estimate(estimator, q, batch, state=state)
    assert_close(found, flat(plain) - taken)


def test_the_surrogate_descends_the_squared_difference():
    """∇_v ‖ĝ − C_v‖² by differences, against the sign of Adam's first step."""
    problem, q = logistic()
    batch = some(problem)
    estimator = component("gradient", "quadratic_cv", lr=1e-3)
    start = estimator.init(q, Streams(0))
    spread_out(start.surrogate)

    def square(change):
        state = copy.deepcopy(start)
        with torch.no_grad():
            state.surrogate.b.add_(torch.tensor([change, 0.0]))
        return float(estimate(estimator, q, batch, state=state).square().sum())

    state = copy.deepcopy(start)
    estimator.estimate(q, batch, Streams(0), state)
    moved_by = float((state.surrogate.b - start.surrogate.b).detach()[0])
    # found holds ∇KL too, which does not move with v: same sign where C does
    with_kl = square(1e-5) - square(-1e-5)
    assert moved_by == pytest.approx(-1e-3 * np.sign(with_kl), rel=1e-4)


def test_the_joint_estimate_is_the_one_printed():
    """Tables as a pass left them, half of the rows without entry, and q moved on since."""
    problem, q = logistic("rows")
    estimator, rng = component("gradient", "joint_cv", n_samples=2), Streams(0)
    state = estimator.init(q, rng)
    for rows in ((0, 3), (5, 1)):
        _, _, state = estimator.estimate(q, some(problem, rows), rng, state)
    assert not bool(state.used.known.any())  # the pass goes on
    state.used, state.h, state.H = (
        copy.deepcopy(state.filled),
        state.filled.h.sum(0),
        state.filled.H.sum(0),
    )
    then = q.mean.detach().clone()
    spread_out(q, 3)
    m, L, batch = q.mean.detach(), q.scale_tril.detach(), some(problem, (3, 4, 0))

    def expansion(n, around):
        slope, H = expand_row(q, problem.train, n, around)
        return slope - H @ around, H

    table = {n: expansion(n, then) for n in (0, 1, 3, 5)}
    parameters, (at, weight) = list(q.parameters()), nodes(2, 4)

    def sent(h, H, e):
        return flat(grad(q.transform(e) @ (h + H @ (m + L @ e)), parameters))

    def mean(h, H):
        return sum(w * sent(h, H, e) for e, w in zip(at, weight, strict=True))

    epsilon = q.draw_noise(batch, 2, Streams(5).noise)
    plain, _ = whole_gradient(q, batch, epsilon)
    expected = flat(plain) + sum(mean(*pair) for pair in table.values())
    for b, n in enumerate((3, 4, 0)):
        pair = table.get(n) or expansion(n, m)
        taken = sum(sent(*pair, epsilon[s, b]) for s in range(2)) / 2
        expected = expected - batch.scale * (taken - (0 if n in table else mean(*pair)))
    assert_close(estimate(estimator, q, batch, 5, state), expected)


# ---- what they leave
# -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("noise", ["rows", "shared"])
def test_of_a_quadratic_log_joint_the_expansion_leaves_nothing(noise):
    problem, q = regression(noise)
    batch = some(problem)
    expected = exact(q, batch, 4)
    for seed in range(3):
        found = estimate(component("gradient", "taylor_cv"), q, batch, seed)
        assert_close(found, expected)


@pytest.mark.parametrize("noise", ["rows", "shared"])
def test_of_a_quadratic_log_joint_one_pass_leaves_neither_noise(noise):
    """Whatever the draws and the rows, the gradient of all rows: of q as it is now, and not where
    the rows were seen."""
    problem, q = regression(noise)
    estimator, rng = component("gradient", "joint_cv"), Streams(0)
    state = estimator.init(q, rng)
    for rows in ((0, 5), (3, 1), (7, 6), (2, 4)):
        _, _, state = estimator.estimate(q, some(problem, rows), rng, state)
        spread_out(q, 4)
    for rows in ((5, 2), (0, 1), (3,)):
        found, _, state = estimator.estimate(q, some(problem, rows), rng, state)
        assert_close(flat(found), exact(q, problem.train, 4))
        spread_out(q, 5)


def test_the_right_surrogate_leaves_nothing():
    problem, q = regression("shared")
    estimator = component("gradient", "quadratic_cv")
    state = estimator.init(q, Streams(0))
    centre = Derivatives(q, problem.train, q.mean[None, None])  # of all rows' f
    with torch.no_grad():
        state.surrogate.b.copy_(centre.slope[0, 0] / 8)
        state.surrogate.a.copy_(centre.columns(torch.eye(3, dtype=F64)[None])[0] / 8)
    for seed in range(3):
        found = estimate(estimator, q, problem.train, seed, copy.deepcopy(state))
        assert_close(found, exact(q, problem.train, 4))


@pytest.mark.parametrize(("full", "curvature"), [(True, "full"), (False, "diagonal")])
def test_the_surrogate_learns_to_leave_little(full, curvature):
    problem, q = regression("shared", full)
    estimator = component("gradient", "quadratic_cv", lr=0.2, curvature=curvature)
    draws = in_a_row(estimator, q, problem.train, 220)
    assert float(draws[-80:].var(0).sum() / draws[:20].var(0).sum()) < 0.4


# ---- mean
# ------------------------------------------------------------------------------------------------------------
def largest_z(draws, expected):
    n = len(draws)
    # some have no noise left
    return float(((draws.mean(0) - expected) / (draws.std(0) / n**0.5 + 1e-9)).abs().max())


COMPARED = [("taylor_cv", {}), ("taylor_cv", {"scale": "local"}), ("quadratic_cv", {"lr": 0.3})]


def in_a_row(estimator, module, batch, steps):
    """Estimates of a module that stands still, while the estimator learns."""
    rng, found = Streams(1), []
    state = estimator.init(module, rng)
    for _ in range(steps):
        gradients, _, state = estimator.estimate(module, batch, rng, state)
        found.append(flat(gradients))
    return torch.stack(found)


def of_many(which, name, changes, steps):
    if which == "posterior":
        problem, module = logistic()
        batch, expected = problem.train, exact(module, problem.train)
    else:
        problem = real_rows(n=12)
        module, batch = ppca(problem, exact_guide=False), problem.train
        expected = flat(grad(exact_elbo(module, batch.x), list(module.parameters())))
    return largest_z(
        in_a_row(component("gradient", name, **changes), module, batch, steps), expected
    )


@pytest.mark.parametrize(("name", "changes"), COMPARED)
@pytest.mark.parametrize("which", ["posterior", "guide"])
def test_unbiased(which, name, changes):
    assert component("gradient", name).unbiased
    assert of_many(which, name, changes, 100) < 4.2


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes"), COMPARED)
@pytest.mark.parametrize("which", ["posterior", "guide"])
def test_unbiased_in_many_draws(which, name, changes):
    assert of_many(which, name, changes | {"n_samples": 10}, 10_000) < 4.2  # 10⁵ draws


def shuffled_z_scores(repeats, steps, seed=0):
    """Largest z-score of the estimates at each of the first steps, over fresh tables and fresh
    orders of 6 rows, two a step."""
    problem, q = logistic("shared")
    estimator, rng, g = (
        component("gradient", "joint_cv"),
        Streams(seed),
        generator(seed),
    )
    found = []
    start = copy.deepcopy(q.state_dict())
    for _ in range(repeats):
        q.load_state_dict(start)
        state, one = estimator.init(q, rng), []
        order = torch.cat([torch.randperm(6, generator=g) for _ in range(3)])
        for step in range(steps):
            rows = tuple(order[2 * step : 2 * step + 2].tolist())
            gradients, _, state = estimator.estimate(q, some(problem, rows), rng, state)
            one.append(flat(gradients))
            with torch.no_grad():
                q.mean.add_(0.3)  # as training moves it: old and new entries differ
        found.append(torch.stack(one))
    scores = []
    q.load_state_dict(start)
    for draws in torch.stack(found, 1):
        scores.append(largest_z(draws, exact(q, problem.train)))
        with torch.no_grad():
            q.mean.add_(0.3)
    return scores


def test_tables_are_unbiased_in_shuffled_passes():
    """Within the first pass, where a sum that ran along would count rows twice, and within the
    second."""
    assert component("gradient", "joint_cv").unbiased
    assert all(score < 4.2 for score in shuffled_z_scores(60, 6))


@pytest.mark.slow
def test_tables_are_unbiased_in_many_shuffled_passes():
    assert all(score < 4.2 for score in shuffled_z_scores(5000, 8))


def test_no_surrogate_knows_the_noise_that_it_corrects():
    """Always the first step, from which Adam moves v by its whole rate: what it learns from itself
    would show."""
    problem, q = logistic()
    estimator, rng = component("gradient", "quadratic_cv", lr=1.0), Streams(0)
    state = estimator.init(q, rng)
    draws = [
        flat(estimator.estimate(q, problem.train, rng, copy.deepcopy(state))[0]) for _ in range(300)
    ]
    assert largest_z(torch.stack(draws), exact(q, problem.train)) < 4


# ---- what is refused
# -------------------------------------------------------------------------------------------------
def test_tables_of_no_rows_of_unknown_rows_and_beyond_memory():
    problem, q = logistic()
    estimator = component("gradient", "joint_cv")
    state = estimator.init(q, Streams(0))
    for batch in (problem.train.part(torch.tensor([1]), 6.0), Rows(torch.zeros(1, 0), 1.0)):
        with pytest.raises(ConfigMismatchError, match="nothing says so; choose gradient=taylor_cv"):
            estimator.estimate(q, batch, Streams(0), state)
    q.target = RowwiseLogJoint(q.target.model)
    with pytest.raises(ConfigMismatchError, match="here are no rows; choose gradient=taylor_cv"):
        estimator.init(q, Streams(0))
    q.target = RowwiseLogJoint(q.target.model, 2, 10**9)
    with pytest.raises(ConfigMismatchError, match="would have 4000000000 numbers"):
        estimator.init(q, Streams(0))


def test_minibatches_say_which_rows_they_are():
    problem = real(n=7, n_tasks=1, missing=0.0, batch_size=3)
    for _, batch in problem.batches("minibatch", Streams(0), 0, 5):
        assert isinstance(batch, Batch)
        assert torch.equal(problem.train.x[batch.numbers], batch.x)
        assert torch.equal(batch.part(torch.tensor([2, 0]), 1.0).numbers, batch.numbers[[2, 0]])
    assert problem.train.numbers is None
    assert problem.held_out(0.3, Streams(0)).train.numbers is None


def test_what_is_affine_has_no_curvature():
    class Affine(nn.Module):
        def rows_at(self, batch, theta):
            return theta.sum(-1)

    d = Derivatives(Affine(), Rows(torch.zeros(2, 1), 1.0), torch.zeros(1, 2, 3))
    assert torch.equal(d.times(torch.ones(1, 2, 3)), torch.zeros(1, 2, 3))
    assert torch.equal(d.slope, torch.ones(1, 2, 3))
