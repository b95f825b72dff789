import math

import pytest
import torch
from support.runs.configured import component, generator
from support.small.small_problems import classes, train
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from runner.execution.rng import Streams

FGSM = component("attacker", "fgsm")


def mlp_victim(problem, inference="map", **options):
    model = component("model", "mlp", **options)
    method = component("inference", inference, lr=0.01)
    state, _ = train(method, model, problem, 60)
    return Attacked(method.posterior(state), problem.bounds)


def test_fgsm_matches_literal_step():
    """x' = x − ε sign ∇_x log p(y|x), clipped to the bounds, with the derivative by central
    differences."""
    problem = classes(n=8)
    victim = mlp_victim(problem, widths=[6], activation="tanh")
    x = problem.test.x
    y = problem.test.y
    attacked = FGSM.perturb(victim, x, y, Streams(0), 0.2)
    h = 1e-6

    def log_p(row, label):
        return float(victim.posterior.predict(row[None], None).log_prob(label[None]).sum())

    for b in range(len(x)):
        for j in range(x.shape[1]):
            step = torch.zeros_like(x[b])
            step[j] = h
            slope = (log_p(x[b] + step, y[b]) - log_p(x[b] - step, y[b])) / (2 * h)
            expected = min(max(float(x[b, j]) - 0.2 * math.copysign(1, slope), 0.0), 1.0)
            assert float(attacked[b, j]) == pytest.approx(expected, abs=1e-12)


def test_linear_margin_falls_by_epsilon_times_l1_norm():
    """Two classes, f = Wx: the margin f_y − f_other falls by exactly ε ‖w_y − w_other‖₁, the most
    that any δ with ‖δ‖∞ ≤ ε can do (Goodfellow et al. 2015, section 3)."""
    problem = classes(n_classes=2, bounds=None)
    victim = mlp_victim(problem, widths=[])
    x = problem.test.x
    y = problem.test.y
    attacked = FGSM.perturb(victim, x, y, Streams(0), 0.1)

    def margin(inputs):
        f = victim.posterior.network(inputs)[:, 0]
        return (f.gather(1, y) - f.gather(1, 1 - y))[:, 0]

    ((w, _),) = victim.posterior.network.layers(victim.posterior.network.theta)
    fall = 0.1 * (w[0] - w[1]).abs().sum()
    assert_close(margin(x) - margin(attacked), fall.expand(len(x)))
    g = generator(0)
    others = 0.2 * torch.rand(200, *x.shape, generator=g, dtype=x.dtype) - 0.1
    assert torch.stack([margin(x) - margin(x + d) for d in others]).max() <= float(fall) + 1e-12


def test_bayesian_gradient_uses_mean_probability():
    """∇ log S⁻¹ Σ_s p_s, not S⁻¹ Σ_s ∇ log p_s: the attacker sees the predictive of the given
    draws."""
    problem = classes(n=5)
    victim = mlp_victim(problem, "mean_field_vi", widths=[6])
    x = problem.test.x.clone().requires_grad_()
    y = problem.test.y
    logits = victim.posterior.predict(x, generator(1)).logits
    probability = logits.softmax(-1).mean(0).gather(-1, y[..., None])[..., 0]
    (expected,) = torch.autograd.grad(probability.log().sum(), x)
    assert_close(victim.input_gradient(x, y, generator(1)), expected)


def test_gradients_ignore_parameters_and_missing_labels():
    problem = classes(n=6, n_tasks=2)
    victim = mlp_victim(problem)
    y = problem.test.y.clone()
    y[0] = -1
    with torch.no_grad():
        attacked = FGSM.perturb(victim, problem.test.x, y, Streams(0), 0.1)
    assert torch.equal(attacked[0], problem.test.x[0])
    assert all(p.grad is None for p in victim.posterior.network.parameters())
    assert not attacked.requires_grad


def test_victim_without_gradient_is_refused():
    problem = classes()
    method = component("inference", "fit")
    state, _ = train(method, component("model", "irf", trees=5), problem, 1)
    victim = Attacked(method.posterior(state), problem.bounds)
    with pytest.raises(ValueError, match=r"^attacker: .*; attack a network"):
        FGSM.perturb(victim, problem.test.x, problem.test.y, Streams(0), 0.1)
