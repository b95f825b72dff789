"""The surrogate bound of semi-implicit variational inference: literal form, order, monotonicity,
and learning."""

import pytest
import torch
from support.runs.configured import component, double, load, normal
from support.small.small_problems import classes
from support.small.small_problems import train as train_labels
from support.targets.affine_families import (
    BIAS,
    COVARIANCE,
    STD,
    WEIGHT,
    affine,
    clone_parameters,
    exact_elbo,
    flat,
    gradients,
    log_normaliser,
    target,
)
from support.targets.known_targets import GaussianTarget, walk, z_score
from support.targets.refined_targets import TARGET, train_refined

from runner.execution.rng import Streams

LOGISTIC = component("model", "logistic_regression")


def test_bound_matches_definition():
    inference, state, rng = affine("sivi", n_samples=3, extra_samples=4)
    repeat = Streams(0).noise
    repeat.set_state(rng.noise.get_state())
    _, info = inference.step(state, None, rng)
    epsilon, u, others = (normal(repeat, n, 2) for n in (3, 3, 4))
    values = []
    for e, v in zip(epsilon, u, strict=True):
        z = WEIGHT @ e + BIAS + STD * v
        centres = torch.cat([e[None], others]) @ WEIGHT.T + BIAS
        density = torch.distributions.Normal(centres, STD).log_prob(z).sum(1).exp().mean()
        values.append(target().log_prior(z[None])[0] - density.log())
    assert float(info["elbo"]) == pytest.approx(float(sum(values)) / 3, rel=1e-10)
    assert float(info["elbo"]) == pytest.approx(float(info["log_joint"] + info["entropy"]))


def bounds(K, n, model):
    """Independent estimates of L_K at the affine family."""
    _, state, rng = affine("sivi", model, n_samples=1)
    q = state.q
    with torch.no_grad():
        epsilon = q.mixing(n, rng.noise)
        z = q.mean(epsilon) + q.std * q.conditional(n, rng.noise)
        others = q.mean(q.mixing(n * K, rng.noise)).unflatten(0, (n, K))
        rows = [
            q.log_surrogate(z[i : i + 1], q.mean(epsilon[i : i + 1]), others[i]) for i in range(n)
        ]
        return model.log_prior(z) - torch.cat(rows)


def test_bound_rises_with_draws_below_log_normaliser():
    # q itself: its ELBO is the log normaliser, the upper limit of all bounds
    exact = GaussianTarget(BIAS, COVARIANCE)
    top = log_normaliser(exact)
    assert float(exact_elbo(WEIGHT, BIAS, STD.log(), exact)) == pytest.approx(top)
    # E log p + H(q(z|ε))
    none = float(-0.5 * 2 + 0.5 * torch.log(2 * torch.pi * torch.e * STD.square()).sum())
    bounds_of_k = {K: bounds(K, 1500, exact) for K in (0, 1, 4, 16, 256)}
    mean = {K: float(value.mean()) for K, value in bounds_of_k.items()}
    error = {K: float(value.std()) / 1500**0.5 for K, value in bounds_of_k.items()}
    assert mean[0] == pytest.approx(none, abs=4 * error[0])
    assert all(value < top + 4 * error[K] for K, value in mean.items())
    assert all(mean[a] < mean[b] - 4 * error[a] for a, b in ((0, 1), (1, 4), (4, 16)))
    assert mean[256] == pytest.approx(top, abs=0.02 + 4 * error[256])


def test_many_draws_give_elbo_gradient():
    inference, state, rng = affine("sivi", n_samples=500, extra_samples=2000)
    estimates = gradients(inference, state, rng, 25)
    values = clone_parameters()
    exact = flat(torch.autograd.grad(exact_elbo(*values, target()), values))
    assert z_score(estimates, exact).abs().max() < 4.5


@pytest.mark.parametrize("name", ["sivi", "uivi", "ksivi"])
def test_reported_bound_is_below_log_normaliser(name):
    inference, state, _ = affine(name, n_samples=2, draws=400, bound_samples=2000)
    posterior = inference.posterior(state)
    assert posterior.draws.shape == (2, 400, 2)
    assert torch.equal(posterior.draws, inference.posterior(state).draws)
    values = posterior.flat
    assert z_score(values, BIAS).abs().max() < 4
    assert (
        z_score(torch.einsum("sp,sq->spq", values - BIAS, values - BIAS), COVARIANCE).abs().max()
        < 4
    )
    elbo = -posterior.scores()["nelbo"]
    exact = float(exact_elbo(WEIGHT, BIAS, STD.log(), target()))
    spread = target().log_prior(values) - torch.distributions.MultivariateNormal(
        BIAS, COVARIANCE
    ).log_prob(values)
    assert elbo == pytest.approx(exact, abs=4 * float(spread.std()) / 800**0.5 + 0.01)
    assert elbo < log_normaliser(target())


@pytest.mark.parametrize(
    ("name", "steps", "keys"),
    [
        ("sivi", 300, {"n_samples": 100, "extra_samples": 300}),
        ("uivi", 200, {"n_samples": 50}),
        ("ksivi", 400, {}),
    ],
)
def test_sivi_learns_correlated_gaussian(name, steps, keys):
    covariance = double([[1.0, 0.7], [0.7, 1.0]])
    model = GaussianTarget(double([1.0, -1.0]), covariance)
    inference = component("inference", name, widths=[], lr=0.03, draws=2000, **keys)
    (_, first), *_, (state, last) = walk(inference, model, steps)
    posterior = inference.posterior(state)
    assert torch.allclose(posterior.mean, model.mean, atol=0.12)
    assert torch.allclose(torch.cov(posterior.flat.T), covariance, atol=0.2)
    if name == "sivi":
        assert 0 < posterior.scores()["nelbo"] + log_normaliser(model) < 0.1
    if name == "uivi":  # its step sizes are adapted
        assert 0.8 < last["acceptance_rate"] < 0.98
        assert state.step_size != 0.1
    if name == "ksivi":
        assert last["ksd_squared"] < 0.1 * first["ksd_squared"]


@pytest.mark.parametrize("name", ["sivi", "uivi", "ksivi", "vcd"])
def test_sivi_predicts_labels(name):
    problem = classes(n_classes=2, batch_size=16 if name in ("sivi", "uivi") else None)
    small = {"improve_steps": 2} if name == "vcd" else {"widths": [8], "bound_samples": 20}
    n_samples, steps = (40, 200) if name == "ksivi" else (8, 40)
    inference = component("inference", name, n_samples=n_samples, lr=0.05, draws=100, **small)
    state, rng = train_labels(inference, LOGISTIC, problem, steps)
    posterior = inference.posterior(state)
    scores = problem.score(posterior, rng)
    assert scores["nelbo"] == posterior.scores()["nelbo"]
    assert scores["accuracy"] > 0.6


def test_minibatch_is_scaled_to_all_rows():
    problem = classes(n_classes=2)
    model = LOGISTIC.build(problem, Streams(0))
    inference = component("inference", "sivi", widths=[], n_samples=3)
    results = []
    for rows in (slice(0, 30), slice(30, 60), slice(0, 60)):
        rng = Streams(0)
        state = inference.init(model, problem, rng)
        batch = problem.train.part(rows, 60 / len(problem.train.x[rows]))
        results.append(float(inference.step(state, batch, rng)[1]["elbo"]))
    assert (results[0] + results[1]) / 2 == pytest.approx(results[2])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "steps"), [("sivi", 8000), ("uivi", 4000), ("ksivi", 8000)])
@pytest.mark.parametrize("shape", ["banana", "multimodal", "x_shaped"])
def test_sivi_fits_density_in_the_plane(name, steps, shape, request):
    if name == "ksivi" and shape != "multimodal":
        narrow = (
            "its draws are too narrow: a mean is wrong by 4.3 standard deviations (banana), a "
            "standard deviation by 1.8 (x_shaped)"
        )
        request.applymarker(pytest.mark.xfail(reason=narrow, strict=True))
    problem, _ = load("planar_toy", shape=shape)
    inference = component("inference", name, n_samples=50, lr=0.005, draws=2000)
    state, _, rng = train_refined(inference, TARGET, problem, steps)
    scores = problem.score(inference.posterior(state), rng)
    # ksivi minimises another discrepancy
    assert -0.01 < scores["nelbo"] < (0.5 if name == "ksivi" else 0.35)
    assert scores["error_sd"] < 0.6
