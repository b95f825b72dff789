"""The variational contrastive divergence: its three forms, its gradient compared with quadrature,
and its learning."""

import math

import pytest
import torch
from support.runs.configured import component, double, load, normal
from support.targets.contrastive_divergence import check_contrast
from support.targets.known_targets import F64, GaussianTarget, run_chains, z_score
from support.targets.refined_targets import TARGET, train_refined
from torch.distributions import Normal

from components.inference.semi_implicit.transitions import iterate
from runner.execution.rng import Streams

EPS = 0.9


class Quartic(GaussianTarget):
    """log p = −¼ z⁴ on the line."""

    def __init__(self):
        super().__init__(torch.zeros(1, dtype=F64), torch.eye(1, dtype=F64))

    def log_prior(self, theta):
        return -0.25 * theta[:, 0] ** 4


def start_fixed(model, mean, std, **changes):
    """Inference with q fixed at N(m, s²), its state and streams."""
    keys = {"optimizer": "sgd", "momentum": 0.0, "lr": 1e-30, "step_size": EPS}
    keys |= {"improve_steps": 1, "leapfrog_steps": 1}
    inference = component("inference", "vcd", **keys | changes)
    rng = Streams(0)
    state = inference.init(model, None, rng)
    with torch.no_grad():
        state.q.mean.fill_(mean)
        state.q.log_std.fill_(math.log(std))
    return inference, state, rng


def test_gradient_is_unbiased_and_value_matches_quadrature():
    model = Quartic()
    inference, state, rng = start_fixed(model, 0.4, 0.7, n_samples=2000)
    results = []
    values = []
    for t in range(80):
        state, info = inference.step(state, None, rng)
        state.step_size = EPS
        if t:  # the first step has no mean of past steps
            # descent: of L_VCD itself
            results.append(torch.cat([p.grad for p in (state.q.mean, state.q.log_std)]))
            values.append(info["vcd"])
    check_contrast(lambda z: -0.25 * z**4, 0.4, 0.7, EPS, values, results)


def test_value_matches_definition():
    """−E_q[f(z)] + E_{q^(t)}[f(z)], the first term with the entropy in closed form."""
    model = Quartic()
    inference, state, rng = start_fixed(
        model, 0.4, 0.7, n_samples=5, improve_steps=3, leapfrog_steps=2
    )
    repeat = Streams(0).noise
    repeat.set_state(rng.noise.get_state())
    _, info = inference.step(state, None, rng)
    z = 0.4 + 0.7 * normal(repeat, 5, 1)
    after = iterate(model, None, z, 3, 2, EPS, repeat)[0][-1]
    q = Normal(double(0.4), double(0.7))
    elbo = float((-0.25 * z**4).mean() + q.entropy())
    improved = float((-0.25 * after**4 - q.log_prob(after)).mean())
    terms = [float(info[name]) for name in ("elbo", "improved", "vcd")]
    assert terms == pytest.approx([elbo, improved, improved - elbo])


def test_divergence_is_zero_only_at_the_target():
    model = GaussianTarget(double([0.4]), double([[0.49]]))

    def z(mean):
        keys = {"n_samples": 500, "improve_steps": 2, "leapfrog_steps": 2, "step_size": 0.4}
        inference, state, rng = start_fixed(model, mean, 0.7, **keys)
        values = []
        for _ in range(30):
            state, info = inference.step(state, None, rng)
            values.append(info["vcd"])
        return z_score(torch.stack(values), 0.0)

    assert abs(z(0.4)) < 4
    assert z(0.9) > 10


def fit_q(model, steps=250, **changes):
    keys = {"n_samples": 20, "lr": 0.03, "draws": 1500, "improve_steps": 3, "step_size": 0.3}
    inference = component("inference", "vcd", **keys | changes)
    return inference, run_chains(inference, model, steps)[0]


def test_vcd_learns_gaussian_exactly():
    covariance = double([[1.0, 0.8], [0.8, 1.0]])
    model = GaussianTarget(double([1.0, -1.0]), covariance)
    inference, state = fit_q(model, covariance="full", infer_steps=0)
    posterior = inference.posterior(state)
    assert torch.allclose(state.q.mean, model.mean, atol=0.15)
    assert torch.allclose(state.q.covariance, covariance, atol=0.2)
    assert torch.allclose(torch.cov(posterior.flat.T), covariance, atol=0.3)
    inference, state = fit_q(model)
    # the variance of the best diagonal q by KL(q ‖ p): 0.36
    narrow = float(1 / torch.linalg.inv(covariance)[0, 0])
    variance = (2 * state.q.log_std).exp()
    assert (variance > 1.3 * narrow).all()
    # and its improved draws have the correlation of the target
    improved = torch.cov(inference.posterior(state).flat.T)
    assert improved[0, 1] > 0.4


def test_without_steps_draws_come_from_q():
    problem, _ = load("planar_toy", shape="banana")
    keys = {"n_samples": 20, "lr": 0.03, "improve_steps": 4, "leapfrog_steps": 3}
    inference = component("inference", "vcd", infer_steps=0, **keys)
    state, _, rng = train_refined(inference, TARGET, problem, 150)
    posterior = inference.posterior(state)
    better = component("inference", "vcd", **keys).posterior(state)
    assert posterior.scores() == better.scores()
    assert posterior.scores()["nelbo"] > 0  # a normalised target
    z = (posterior.flat - state.q.mean) / state.q.log_std.exp()
    assert z_score(z.detach(), 0.0).abs().max() < 4
    assert problem.score(better, rng)["ksd"] < problem.score(posterior, rng)["ksd"]


def test_running_mean_matches_definition():
    inference, state, rng = start_fixed(Quartic(), 0.4, 0.7, n_samples=5, decay=0.75)
    state, first = inference.step(state, None, rng)
    assert float(state.control) == pytest.approx(float(first["improved"]))
    state, second = inference.step(state, None, rng)
    assert float(state.control) == pytest.approx(
        0.75 * float(first["improved"]) + 0.25 * float(second["improved"])
    )
