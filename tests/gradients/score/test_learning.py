"""Quantities that score-function gradients learn during training."""

import pytest
import torch
from support.runs.configured import F64, component
from support.targets.bernoulli_by_hand import SmallBernoulli, exact_gradient, flat, log_ratio, rows
from torch.autograd import grad
from torch.testing import assert_close

from runner.execution.rng import Streams


def test_nvil_uses_baseline_from_before_the_step():
    module = SmallBernoulli()
    batch = rows(n=3)
    estimator = component("gradient", "nvil", n_samples=2)
    rng = Streams(0)
    state = estimator.init(module, rng)
    for _ in range(3):
        with torch.no_grad():
            control = state.control(batch.x)[:, 0] + state.mean
        scale = state.variance.sqrt().clamp_min(1)
        noise_state = rng.noise.get_state()
        gradients, _, state = estimator.estimate(module, batch, rng, state)
        rng.noise.set_state(noise_state)
        z = module.sample(batch, 2, rng.noise)
        log_q = module.log_q(batch, z)
        log_joint = module.log_joint(batch, z)
        signal = ((log_joint - log_q).detach() - control) / scale
        literal = grad((signal * log_q + log_joint).mean(0).sum(), list(module.parameters()))
        assert_close(flat(gradients), flat(literal), rtol=1e-10, atol=1e-10)


def test_nvil_learns_baseline_per_row():
    module = SmallBernoulli()
    batch = rows(n=6, copies=20)
    estimator = component("gradient", "nvil", n_samples=4, lr=0.02)
    rng = Streams(0)
    state = estimator.init(module, rng)
    for _ in range(350):
        _, terms, state = estimator.estimate(module, batch, rng, state)
    log_q, f = (v.detach() for v in log_ratio(module, batch))
    worth = -(log_q.exp() * f).sum(0)  # ELBO_b [B]
    with torch.no_grad():
        learnt = state.control(batch.x)[:, 0] + state.mean
    assert (learnt - worth).square().mean() < 0.1 * float(worth.var())
    assert float(terms["baseline_mse"]) == pytest.approx(
        float((log_q.exp() * (-f - worth).square()).sum(0).mean()), rel=0.3
    )


def test_nvil_scales_only_guide_gradients():
    module = SmallBernoulli()
    batch = rows(copies=400, scale=0.005)
    estimator = component("gradient", "nvil", n_samples=1)
    rng = Streams(0)
    state = estimator.init(module, rng)
    state.variance.fill_(9.0)
    results = []
    for _ in range(200):
        gradients, _, _ = estimator.estimate(module, batch, rng, state)
        results.append(flat(gradients))
    factor = torch.cat(
        [
            torch.full((p.numel(),), 1 / 3 if name in module.guide else 1.0, dtype=F64)
            for name, p in module.named_parameters()
        ]
    )
    draws = torch.stack(results)
    exact = exact_gradient(module, batch) * factor
    assert ((draws.mean(0) - exact) / (draws.std(0) / 200**0.5)).abs().max() < 4.2


def test_reference_is_fixed_until_refresh():
    module = SmallBernoulli()
    batch = rows(n=2)
    start = module.inward.detach().clone()
    estimator = component("gradient", "vargrad_reference", n_samples=3, refresh=2)
    rng = Streams(0)
    state = estimator.init(module, rng)
    movements = []
    for _ in range(4):
        _, terms, state = estimator.estimate(module, batch, rng, state)
        movements.append(float((state.module.inward - start).detach().abs().max()))
        module.inward.data.add_(1.0)
    assert_close(movements, [0.0, 0.0, 2.0, 2.0])
    assert set(terms) == {"elbo", "log_variance"}


def test_reference_refreshed_every_step_is_vargrad():
    module = SmallBernoulli()
    batch = rows(n=2)
    estimator = component("gradient", "vargrad_reference", n_samples=3, refresh=1)
    state = estimator.init(SmallBernoulli(seed=5), Streams(0))
    estimate, _, _ = estimator.estimate(module, batch, Streams(1), state)
    vargrad, _, _ = component("gradient", "vargrad", n_samples=3).estimate(
        module, batch, Streams(1), None
    )
    assert_close(flat(estimate), flat(vargrad), rtol=0, atol=0)


def test_fixed_reference_gives_log_variance_gradient():
    """∇ ½ Var_r f enumerated, with r the guide of another seed."""
    module = SmallBernoulli()
    other = SmallBernoulli(seed=5)
    batch = rows(copies=400, scale=0.005)
    estimator = component("gradient", "vargrad_reference", n_samples=3, refresh=None)
    rng = Streams(0)
    state = estimator.init(other, rng)
    names = [name for name, _ in module.named_parameters()]
    results = []
    for _ in range(200):
        gradients, _, state = estimator.estimate(module, batch, rng, state)
        results.append(
            flat([g for name, g in zip(names, gradients, strict=True) if name in module.guide])
        )
    _, f = log_ratio(module, batch)
    r = log_ratio(other, batch)[0].exp().detach()
    loss = 0.5 * ((r * f.square()).sum(0) - (r * f).sum(0).square()).sum() * batch.scale
    exact = -flat(grad(loss, [p for n, p in module.named_parameters() if n in module.guide]))
    draws = torch.stack(results)
    assert ((draws.mean(0) - exact) / (draws.std(0) / 200**0.5)).abs().max() < 4
