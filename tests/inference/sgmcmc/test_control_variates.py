"""Minibatch gradients: unbiased whatever is taken off them, less noisy near the mode, and the bias
they leave in chains."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import pytest
import torch
from support.runs.configured import component, generator, normal
from support.small.small_problems import classes, real, resumed, tensors, train
from support.targets.recipe import F64, covariance_z, fixed_point
from torch import Tensor
from torch.testing import assert_close

from components.contracts.problems import Batch
from components.errors import ConfigMismatchError
from components.inference.log_joint import value_and_gradient
from components.inference.sgmcmc import control_variates
from components.problems.supervised import Supervised
from runner.execution.rng import Streams

GRADIENTS = ["plain", "control_variate", "svrg"]


def regression(n: int, batch_size: int | None = None) -> Supervised:
    """Labels with unit noise, so that gradients of minibatches are noisy at the mode too."""
    problem = real(n=n, n_inputs=2, n_tasks=1, missing=0.0, batch_size=batch_size)
    noise = normal(generator(7), problem.train.y.shape)
    return replace(problem, train=replace(problem.train, y=problem.train.y + noise))


def started(problem: Supervised, model_name: str, gradient: str, name: str = "sgld", **keys):
    """A method, its model and its state, whose reference is in place."""
    options = {"noise": 0.5} if model_name == "linear_regression" else {}
    rng = Streams(0)
    model = component("model", model_name, **options).build(problem, rng)
    inference = component("inference", name, gradient=gradient, chains=3, **keys)
    return inference, model, moved(inference, inference.init(model, problem, rng))


def moved(inference, state, theta: Tensor | None = None):
    """A state whose reference is where the chains are, or at θ."""
    at = state.theta if theta is None else theta
    return replace(state, control=inference.refresh_reference(state.control, state.model, at, 0))


def batches(problem: Supervised, size: int) -> list[Batch]:
    """Every minibatch of so many rows."""
    return [picked(problem, list(rows)) for rows in combinations(range(problem.n), size)]


def picked(problem: Supervised, rows: list[int] | Tensor) -> Batch:
    whole = problem.train
    return Batch(whole.x[rows], whole.y[rows], whole.mask[rows], problem.n / len(rows))


# ---- the estimates
# ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("gradient", GRADIENTS)
def test_the_mean_over_all_batches_is_the_gradient_of_all_rows(gradient):
    problem = regression(7)
    inference, model, state = started(problem, "linear_regression", gradient)
    theta = state.theta + 0.3
    exact = value_and_gradient(model, theta, problem.train)
    found = [
        inference.estimate(state.control, model, theta, batch) for batch in batches(problem, 2)
    ]
    for i in range(2):
        assert_close(torch.stack([f[i] for f in found]).mean(0), exact[i])


@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("model_name", ["linear_regression", "logistic_regression"])
def test_unbiased_by_z_test_and_less_noisy_near_the_reference(model_name, gradient):
    problem = (
        regression(200)
        if model_name == "linear_regression"
        else classes(n=200, n_classes=2, n_inputs=3)
    )
    inference, model, state = started(problem, model_name, gradient)
    centre = control_variates.mode(model, state.theta[:1], problem.train, 100)
    assert_close(
        value_and_gradient(model, centre, problem.train)[1],
        torch.zeros_like(centre),
        atol=1e-3,
        rtol=0,
    )
    g = generator(1)
    # a posterior standard deviation or so
    theta = centre + 0.05 * normal(g, 3, model.dim)
    if gradient == "svrg":
        state = moved(inference, state, centre + 0.05 * normal(g, 3, model.dim))
    exact = value_and_gradient(model, theta, problem.train)[1]
    some = [picked(problem, torch.randperm(200, generator=g)[:10]) for _ in range(600)]
    found = torch.stack(
        [inference.estimate(state.control, model, theta, batch)[1] for batch in some]
    )
    z = (found.mean(0) - exact) / (found.std(0) / 600**0.5)
    assert z.abs().max() < 4
    plain = torch.stack([value_and_gradient(model, theta, batch)[1] for batch in some])
    ratio = float(found.var(0).sum() / plain.var(0).sum())
    assert ratio == 1 if gradient == "plain" else ratio < 0.15
    # The mutant forgets the gradient of all rows at the reference: biased wherever that point is
    # not a mode.
    if gradient == "svrg":
        wrong = found - state.control.slope
        assert ((wrong.mean(0) - exact) / (found.std(0) / 600**0.5)).abs().max() > 4


def test_svrg_refers_to_where_each_chain_was():
    problem = regression(20)
    inference, model, state = started(problem, "linear_regression", "svrg", refresh_every=3)
    rng, seen = Streams(1), []
    for t in range(7):
        before = state.theta
        state, _ = inference.step(state, picked(problem, [t, t + 1]), rng)
        seen.append(before)
        assert_close(state.control.reference, seen[3 * (t // 3)])
        assert_close(
            state.control.slope, value_and_gradient(model, seen[3 * (t // 3)], problem.train)[1]
        )


@pytest.mark.parametrize(
    "model_name", ["linear_regression", "logistic_regression"]
)  # one by autograd, one by its score
def test_the_gradient_of_all_rows_may_come_in_parts(monkeypatch, model_name):
    problem = (
        regression(23)
        if model_name == "linear_regression"
        else classes(n=23, n_classes=2, n_inputs=3)
    )
    _, model, state = started(problem, model_name, "plain")
    exact = value_and_gradient(model, state.theta, problem.train)
    for rows in (5, 22, 23, 4096):
        monkeypatch.setattr(control_variates, "ROWS", rows)
        for a, b in zip(
            control_variates.whole_gradient(model, state.theta, problem.train), exact, strict=True
        ):
            assert_close(a, b)


@pytest.mark.parametrize("gradient", GRADIENTS)
def test_noise_estimate_is_unbiased(gradient):
    problem = regression(6)
    sghmc, model, state = started(
        problem, "linear_regression", gradient, "sghmc", noise_estimate=True
    )
    theta = state.theta + 0.3
    ordered = [picked(problem, list(rows)) for rows in permutations(range(6), 4)]
    found = [sghmc.split_gradient(state.control, model, theta, batch) for batch in ordered]
    gradients = torch.stack([f[1] for f in found])
    assert_close(torch.stack([f[2] for f in found]).mean(0), gradients.var(0, correction=0))
    assert_close(gradients[5], sghmc.estimate(state.control, model, theta, ordered[5])[1])
    odd = sghmc.split_gradient(
        state.control, model, theta, picked(problem, [0, 1, 2, 3, 4])
    )  # the fifth row is left out
    for a, b in zip(
        odd,
        sghmc.split_gradient(state.control, model, theta, picked(problem, [0, 1, 2, 3])),
        strict=True,
    ):
        assert_close(a, b)


def test_what_does_not_fit_is_refused():
    density = component("dataset", "mixture_of_gaussians_2d").load(Streams(0), _setting())
    target = component("model", "target_density").build(density, Streams(0))
    for name in ("sgld", "sghmc", "psgld", "sgd_momentum", "adam_noise"):
        for gradient in GRADIENTS[1:]:
            with pytest.raises(
                ConfigMismatchError, match=rf"inference\.gradient={gradient}: a density"
            ):
                component("inference", name, gradient=gradient).init(target, density, Streams(0))
    with pytest.raises(ConfigMismatchError, match=r"inference\.noise_estimate: a density"):
        component("inference", "sghmc", noise_estimate=True).init(target, density, Streams(0))
    sghmc, _, state = started(
        regression(6), "linear_regression", "plain", "sghmc", noise_estimate=True
    )
    with pytest.raises(ConfigMismatchError, match="batch of 1 row"):
        sghmc.step(state, picked(regression(6), [0]), Streams(0))


def _setting():
    from pathlib import Path

    from components.contracts.roles import Setting

    return Setting(Path(), torch.device("cpu"), F64, 1, offline=True)


# ---- chains on minibatches
# -------------------------------------------------------------------------------------------
class Rows:
    """y ~ N(x·θ, σ²), θ ~ N(0, I); a batch may hold other rows for each chain, x [B, K, P], so that
    chains are independent."""

    dim, names, sigma2 = 2, ["a", "b"], 0.5

    def constrain(self, theta: Tensor) -> Tensor:
        return theta

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return normal(generator, n, 2)

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        shared = batch.x.ndim == 2
        predicted = theta @ batch.x.T if shared else (batch.x * theta).sum(2).T  # [K, B]
        return -0.5 * ((batch.y[:, 0] if shared else batch.y.T) - predicted).square() / self.sigma2

    def log_prior(self, theta: Tensor) -> Tensor:
        return -0.5 * theta.square().sum(1)


def chains_on_minibatches(
    name: str, gradient: str, eps: float, steps: int, n_chains: int = 4000, **keys
):
    """Where chains are that see two rows at a time, each its own; (θ [C, P], the problem, the
    method's state)."""
    problem, model, rng, size = regression(8), Rows(), Streams(0), 4
    inference = component(
        "inference", name, chains=n_chains, gradient=gradient, step_size=eps, thinning=10**6, **keys
    )
    state = inference.init(model, problem, rng)
    if gradient == "control_variate":
        at = state.control
        at = replace(
            at, reference=at.reference.expand(n_chains, 2), slope=at.slope.expand(n_chains, 2)
        )
        state = replace(state, control=at)
    pick = generator(3)
    for _ in range(steps):
        rows = torch.rand(n_chains, problem.n, generator=pick).argsort(1)[:, :size].T  # [B, K]
        batch = Batch(
            problem.train.x[rows],
            problem.train.y[rows, 0],
            problem.train.mask[rows, 0],
            problem.n / size,
        )
        state, info = inference.step(state, batch, rng)
    return state.theta, problem, info


def moments(problem: Supervised, eps: float, gradient: str) -> tuple[Tensor, Tensor, Tensor]:
    """Posterior mean and covariance, and the covariance at which SGLD comes to rest: exact, from
    every minibatch.

    ĝ(θ) = b − A θ for each batch, so that Σ = E[(I − εA) Σ (I − εA)ᵀ] + ε² Cov(b − A m) + 2εI."""
    X, y = problem.train.x, problem.train.y[:, 0]
    precision = torch.eye(2, dtype=F64) + X.T @ X / Rows.sigma2
    m = torch.linalg.solve(precision, X.T @ y / Rows.sigma2)
    rest = [2 * eps * torch.eye(2, dtype=F64)]
    spread = []
    for rows in combinations(range(problem.n), 4):
        x, label, scale = X[list(rows)], y[list(rows)], problem.n / 4
        A = torch.eye(2, dtype=F64) + scale * x.T @ x / Rows.sigma2
        # θ̂ = m
        off = (
            scale * x.T @ label / Rows.sigma2 - A @ m
            if gradient == "plain"
            else torch.zeros(2, dtype=F64)
        )
        spread.append((torch.eye(2, dtype=F64) - eps * A, eps**2 * torch.outer(off, off)))

    def f(S: Tensor) -> Tensor:
        return rest[0] + torch.stack([B @ S @ B.T + V for B, V in spread]).mean(0)

    return m, torch.linalg.inv(precision), fixed_point(f, 2)


@pytest.mark.parametrize("gradient", ["plain", "control_variate"])
def test_sgld_rests_where_its_minibatches_say(gradient):
    theta, problem, _ = chains_on_minibatches("sgld", gradient, 0.01, 200)
    m, _, rests = moments(problem, 0.01, gradient)
    assert ((theta.mean(0) - m) / (theta.std(0) / len(theta) ** 0.5)).abs().max() < 4
    assert covariance_z(theta, rests) < 4.5  # the law is a little wider than a Gaussian


def excess(theta: Tensor, problem: Supervised) -> float:
    """Relative error of the total variance."""
    exact = moments(problem, 0.01, "plain")[1]
    return float(theta.var(0).sum() / exact.trace() - 1)


def test_bias_of_minibatches_shrinks_with_the_step_and_with_control_variates():
    exact = {}
    for gradient in ("plain", "control_variate"):
        for eps in (0.01, 0.005, 0.0025):
            _, covariance, rests = moments(regression(8), eps, gradient)
            exact[gradient, eps] = float(rests.trace() / covariance.trace() - 1)
        assert exact[gradient, 0.005] / exact[gradient, 0.0025] == pytest.approx(2, rel=0.1)
    assert exact["control_variate", 0.01] < 0.7 * exact["plain", 0.01]
    svrg, problem, _ = chains_on_minibatches("sgld", "svrg", 0.01, 200, refresh_every=5)
    assert excess(svrg, problem) < 0.7 * exact["plain", 0.01] + 0.03


def test_sghmc_takes_the_noise_of_minibatches_off_its_own():
    keys = {"friction": 2.0, "noise_window": 20}
    hot, problem, _ = chains_on_minibatches(
        "sghmc", "plain", 0.05, 250, noise_estimate=False, **keys
    )
    cool, _, info = chains_on_minibatches("sghmc", "plain", 0.05, 250, noise_estimate=True, **keys)
    assert excess(hot, problem) > 0.15
    assert abs(excess(cool, problem)) < 0.35 * excess(hot, problem)
    assert 0 <= float(info["uncovered"]) < 0.2


def test_a_thermostat_takes_up_the_noise_of_minibatches():
    keys = {"friction": 2.0, "dynamics": "thermostat"}
    hot, problem, _ = chains_on_minibatches("sghmc", "plain", 0.05, 250, friction=2.0)
    theta, _, info = chains_on_minibatches("recipe", "plain", 0.05, 250, **keys)
    assert float(info["thermostat"]) > 2.2  # friction that balances the gradients' noise
    assert abs(excess(theta, problem)) < 0.5 * excess(hot, problem)


# ---- resumed runs
# ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("sgld", {"gradient": "control_variate", "schedule": "cyclical"}),
        ("sgld", {"gradient": "svrg", "refresh_every": 4}),
        ("sghmc", {"gradient": "svrg", "refresh_every": 4, "noise_estimate": True}),
        ("recipe", {"dynamics": "thermostat", "metric": "potential", "noise_estimate": True}),
        ("sgd_momentum", {"resample_every": 3}),
        ("psgld", {"correction": True}),
        ("psgld", {"gradient": "control_variate", "adapt": "always"}),
        ("adam_noise", {}),
    ],
)
@pytest.mark.parametrize("stop", [3, 10])
def test_resumed_is_bit_identical(tmp_path, name, keys, stop):
    problem, model = regression(24, batch_size=6), component("model", "linear_regression")
    inference = component(
        "inference", name, **keys | {"chains": 3, "burn_in": 6, "thinning": 2, "step_size": 0.001}
    )
    whole, rng = train(inference, model, problem, 15)
    again, rng_again = resumed(inference, model, problem, 15, stop, tmp_path)
    for a, b in zip(tensors(whole), tensors(again), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(rng.noise.get_state(), rng_again.noise.get_state())
    assert not [t for t in tensors(again) if t.shape[0] == problem.n], (
        "checkpoints leave the data out"
    )
