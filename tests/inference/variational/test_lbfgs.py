"""lbfgs: direction and line search compared with literal versions, the optimum with SciPy's, and
its state after a checkpoint."""

import math

import numpy as np
import pytest
import scipy.optimize
import torch
from support.runs.configured import double, generator, normal
from support.small.shallow_gp_problems import F64, problem, streams
from support.small.small_problems import check_resumed, component
from torch import nn

from components.contracts.capabilities import Elbo, Hyperparameters
from components.errors import NumericalError
from components.maths.line_search.limited_memory import find_direction
from components.maths.line_search.module_bound import flatten
from components.maths.line_search.strong_wolfe import (
    CURVATURE,
    SUFFICIENT_DECREASE,
    Trial,
    strong_wolfe,
)


class Function(nn.Module):
    """−f(θ) as a bound."""

    def __init__(self, f, start):
        super().__init__()
        self.theta = nn.Parameter(double(start))
        self.f = f

    def draw_noise(self, batch, n_samples, generator):
        return normal(generator, 3)

    def elbo(self, batch, noise):
        value = -self.f(self.theta)
        return {"elbo": value, "log_likelihood": value, "kl": torch.zeros_like(value)}

    def hyperparameters(self):
        return [self.theta]


def rosenbrock(theta):
    return (100 * (theta[1:] - theta[:-1] ** 2) ** 2 + (1 - theta[:-1]) ** 2).sum()


def run(module, p=None, steps=300, seed=0, **changes):
    p = p or problem()
    inference = component("inference", "lbfgs", **changes)
    rng = streams(seed)
    state = inference.init(module, p, rng)
    infos = []
    for _, batch in p.batches(inference.requires.batch_kind, rng, 0, steps):
        state, info = inference.step(state, batch, rng)
        infos.append(info)
        if info["converged"]:
            break
    return inference, state, infos


# the direction
def test_two_loop_recursion_matches_definition():
    # Nocedal and Wright (2006), eqs. (7.16) and (7.20): H_{k+1} = Vᵀ H V + ρ s sᵀ, V = I − ρ y sᵀ,
    # H₀ = (sᵀy/yᵀy) I.
    g = generator(0)
    S = normal(g, 4, 6)
    A = normal(g, 6, 6)
    Y = S @ (A @ A.T + torch.eye(6, dtype=F64))
    gradient = normal(g, 6)
    H = torch.eye(6, dtype=F64) * (S[-1] @ Y[-1]) / (Y[-1] @ Y[-1])
    for s, y in zip(S, Y, strict=True):
        rho = 1 / (s @ y)
        V = torch.eye(6, dtype=F64) - rho * torch.outer(y, s)
        H = V.T @ H @ V + rho * torch.outer(s, s)
    assert torch.allclose(find_direction(gradient, S, Y), -H @ gradient)
    assert torch.equal(find_direction(gradient, S[:0], Y[:0]), -gradient)


# the line search


LINES = {
    "quadratic": lambda a: (a - 3) ** 2,
    "steep then flat": lambda a: -a / (a**2 + 2),
    "wiggly": lambda a: a**2 - 8 * a + 0.5 * math.sin(9 * a),
    "a wall": lambda a: math.log(1 / (2 - a)) - 3 * a if a < 2 else math.nan,
}


@pytest.mark.parametrize("first", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("f", LINES.values(), ids=LINES)
def test_strong_wolfe_conditions_hold(f, first):
    def phi(a):
        return Trial(a, f(a), (f(a + 1e-6) - f(a - 1e-6)) / 2e-6)

    start = phi(0.0)
    trial, evaluations = strong_wolfe(phi, start, first, 40)
    assert trial is not None
    assert evaluations <= 40
    assert trial.value <= start.value + SUFFICIENT_DECREASE * trial.step * start.slope
    assert abs(trial.slope) <= CURVATURE * abs(start.slope)


def test_no_decrease_is_reported():
    start = Trial(0.0, 1.0, -1.0)
    assert strong_wolfe(lambda a: Trial(a, 1.0 + a, 1.0), start, 1.0, 15) == (None, 15)


# the optimum


def test_minimum_matches_scipy():
    p = problem(n=40, keep=0.8)
    model = component("model", "igp", ard="own", hyperprior=1.0, lengthscale=1.0, variance=1.0)
    _, state, infos = run(model.build(p, streams()), p, tolerance=1e-12, gradient_tolerance=1e-6)
    module = model.build(p, streams())
    parameters = list(module.parameters())

    def f(theta):
        torch.nn.utils.vector_to_parameters(torch.tensor(theta), parameters)
        value = -module.elbo(p.train, None)["elbo"]
        return value.item(), flatten(list(torch.autograd.grad(value, parameters))).numpy()

    options = {"maxiter": 500, "ftol": 1e-14, "gtol": 1e-7}
    start = flatten(parameters).numpy()
    best = scipy.optimize.minimize(f, start, jac=True, method="L-BFGS-B", options=options)
    assert float(infos[-1]["elbo"]) == pytest.approx(-best.fun, abs=1e-6)
    np.testing.assert_allclose(flatten(list(state.module.parameters())).numpy(), best.x, atol=1e-3)


def test_converged_state_is_unchanged():
    inference, state, infos = run(Function(rosenbrock, [-1.2, 1.0]))
    assert infos[-1]["converged"]
    theta_before = state.module.theta.detach().clone()
    state, info = inference.step(state, None, streams())
    assert torch.equal(state.module.theta, theta_before)
    assert info["evaluations"] == infos[-1]["evaluations"]


def test_restarts_keep_the_best():
    # Two basins; the first start cannot reach the deeper one.
    def two_basins(theta):
        return (
            -2 * torch.exp(-((theta - 4) ** 2).sum())
            - torch.exp(-((theta + 1) ** 2).sum())
            + 0.01 * (theta**2).sum()
        )

    result = run(Function(two_basins, [-1.5]))[1]
    many = run(Function(two_basins, [-1.5]), restarts=8, restart_scale=5.0)[1]
    assert float(result.module.theta) == pytest.approx(-1, abs=0.1)
    assert float(many.module.theta) == pytest.approx(4, abs=0.1)
    assert len({float(r.theta) for r in many.runs}) > 1


@pytest.mark.parametrize(("restarts", "needed"), [(1, {Elbo}), (3, {Elbo, Hyperparameters})])
def test_restarts_require_hyperparameters(restarts, needed):
    inference = component("inference", "lbfgs", restarts=restarts)
    assert inference.required_capabilities("supervised") == needed


def test_restarts_of_unsupported_model_are_refused():
    class Plain(nn.Linear):
        draw_noise = Function.draw_noise

    with pytest.raises(AssertionError):
        run(Plain(1, 1), restarts=3)


def test_failed_cholesky_shortens_the_step():
    def barrier(theta):
        if float(theta[0]) > 1.2:
            raise NumericalError("Cholesky of K failed", "raise model.jitter")
        return (theta[0] - 1) ** 2 - 0.1 * torch.log(1.2 - theta[0])

    _, state, infos = run(Function(barrier, [-40.0]), gradient_tolerance=1e-8, tolerance=0.0)
    assert infos[-1]["grad_norm"] < 1e-6
    assert 0.8 < state.module.theta < 1.0
    with pytest.raises(NumericalError, match=r"raise model.jitter"):
        run(Function(barrier, [3.0]))


SPARSE = component("model", "igp", lengthscale=1.0, variance=1.0, posterior="sparse", n_inducing=4)


def test_every_row_is_used_for_any_batch_size():
    p = problem(n=24)
    whole = run(SPARSE.build(p, streams()), p, steps=5)[1]
    p.batch_size = 6
    batched = run(SPARSE.build(p, streams()), p, steps=5)[1]
    parameters, other = (flatten(list(state.module.parameters())) for state in (whole, batched))
    assert torch.equal(parameters, other)


# checkpoints
@pytest.mark.parametrize(
    ("name", "target", "changes"),
    [
        ("igp", "real", {"ard": "own"}),
        ("cgp", "real", {"rank": 2}),
        ("cgp", "binary", {"posterior": "sparse", "n_inducing": 6}),
        ("igp", "classes", {"posterior": "sparse", "n_inducing": 4}),
    ],
)
def test_resumed_run_is_bit_identical(tmp_path, name, target, changes):
    model = component("model", name, lengthscale=1.0, variance=1.0, **changes)
    keys = {"memory": 4, "restarts": 2, "restart_scale": 0.3, "n_samples": 3}
    inference = component("inference", "lbfgs", **keys)
    check_resumed(inference, model, problem(target), tmp_path, 14, 7)
    assert (tmp_path / "r0000-s000000007.safetensors").stat().st_size < 200_000


def test_noise_is_drawn_once():
    p = problem("classes")
    _, state, infos = run(SPARSE.build(p, streams()), p, steps=60, n_samples=5)
    assert state.noise.shape[0] == 5
    values = [float(i["elbo"]) for i in infos]
    # a function that changed between steps would not increase monotonically
    assert values == sorted(values)
    assert values[-1] > values[0] + 1
