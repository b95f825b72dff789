"""What score-function gradients learn on the way, what they refuse, and that a run that was killed
goes on as it would have."""

import pytest
import torch
from support.runs.configured import F64, component, defaults
from support.small.small_problems import resumed, tensors, train
from support.small.unlabelled_problems import real_rows
from support.targets.bernoulli_by_hand import SmallBernoulli, exact_gradient, flat, log_ratio, rows
from torch.autograd import grad
from torch.testing import assert_close

from runner.compose.build import build_component
from runner.compose.parts import expand_component
from runner.errors import ConfigError
from runner.execution.checkpoint import pack, unpack
from runner.execution.rng import Streams

VAE_DIGITS = ["+experiment=vae_digits", "smoke=true"]
LEARNING = {
    "nvil": {},
    "reinforce_cv": {"coefficient": "running"},
    "vargrad_reference": {"refresh": 3},
}


def test_nvil_corrects_with_what_it_knew_before():
    module, batch = SmallBernoulli(), rows(n=3)
    estimator = component("gradient", "nvil", n_samples=2)
    rng = Streams(0)
    state = estimator.init(module, rng)
    for _ in range(3):
        with torch.no_grad():
            known = state.network(batch.x)[:, 0] + state.mean
        scale = state.variance.sqrt().clamp_min(1)
        before = rng.noise.get_state()
        gradients, _, state = estimator.estimate(module, batch, rng, state)
        rng.noise.set_state(before)
        z = module.sample(batch, 2, rng.noise)
        log_q, log_joint = module.log_q(batch, z), module.log_joint(batch, z)
        signal = ((log_joint - log_q).detach() - known) / scale
        literal = grad((signal * log_q + log_joint).mean(0).sum(), list(module.parameters()))
        assert_close(flat(gradients), flat(literal), rtol=1e-10, atol=1e-10)


def test_nvil_learns_what_each_row_is_worth():
    module, batch = SmallBernoulli(), rows(n=6, copies=20)
    estimator = component("gradient", "nvil", n_samples=4, lr=0.02)
    rng = Streams(0)
    state = estimator.init(module, rng)
    for _ in range(350):
        _, terms, state = estimator.estimate(module, batch, rng, state)
    log_q, f = (v.detach() for v in log_ratio(module, batch))
    worth = -(log_q.exp() * f).sum(0)  # ELBO_b [B]
    with torch.no_grad():
        learnt = state.network(batch.x)[:, 0] + state.mean
    assert (learnt - worth).square().mean() < 0.1 * float(worth.var())
    assert float(terms["baseline_mse"]) == pytest.approx(
        float((log_q.exp() * (-f - worth).square()).sum(0).mean()), rel=0.3
    )


def test_nvil_scales_the_guide_and_not_the_model():
    module, batch = SmallBernoulli(), rows(copies=400, scale=0.005)
    estimator = component("gradient", "nvil", n_samples=1)
    rng = Streams(0)
    state = estimator.init(module, rng)
    state.variance.fill_(9.0)
    found = []
    for _ in range(200):
        gradients, _, _ = estimator.estimate(module, batch, rng, state)
        found.append(flat(gradients))
    factor = torch.cat([
        torch.full((p.numel(),), 1 / 3 if name in module.guide else 1.0, dtype=F64)
        for name, p in module.named_parameters()
    ])  # fmt: skip
    draws, exact = torch.stack(found), exact_gradient(module, batch) * factor
    assert ((draws.mean(0) - exact) / (draws.std(0) / 200**0.5)).abs().max() < 4.2


def test_a_reference_stands_still_until_it_is_made_anew():
    module, batch = SmallBernoulli(), rows(n=2)
    start = module.inward.detach().clone()
    estimator = component("gradient", "vargrad_reference", n_samples=3, refresh=2)
    rng = Streams(0)
    state = estimator.init(module, rng)
    seen = []
    for _ in range(4):
        _, terms, state = estimator.estimate(module, batch, rng, state)
        seen.append(float((state.module.inward - start).detach().abs().max()))
        module.inward.data.add_(1.0)
    assert_close(seen, [0.0, 0.0, 2.0, 2.0])
    assert set(terms) == {"elbo", "log_variance"}


def test_a_reference_made_anew_at_every_estimate_is_vargrad():
    module, batch = SmallBernoulli(), rows(n=2)
    estimator = component("gradient", "vargrad_reference", n_samples=3, refresh=1)
    state = estimator.init(SmallBernoulli(seed=5), Streams(0))
    own, _, _ = estimator.estimate(module, batch, Streams(1), state)
    vargrad, _, _ = component("gradient", "vargrad", n_samples=3).estimate(
        module, batch, Streams(1), None
    )
    assert_close(flat(own), flat(vargrad), rtol=0, atol=0)


def test_a_fixed_reference_gives_the_gradient_of_the_log_variance_loss():
    """∇ ½ Var_r f enumerated, with r the guide of another seed."""
    module, other, batch = SmallBernoulli(), SmallBernoulli(seed=5), rows(copies=400, scale=0.005)
    estimator = component("gradient", "vargrad_reference", n_samples=3, refresh=None)
    rng = Streams(0)
    state = estimator.init(other, rng)
    names = [name for name, _ in module.named_parameters()]
    found = []
    for _ in range(200):
        gradients, _, state = estimator.estimate(module, batch, rng, state)
        found.append(
            flat([g for name, g in zip(names, gradients, strict=True) if name in module.guide])
        )
    _, f = log_ratio(module, batch)
    r = log_ratio(other, batch)[0].exp().detach()
    loss = 0.5 * ((r * f.square()).sum(0) - (r * f).sum(0).square()).sum() * batch.scale
    exact = -flat(grad(loss, [p for n, p in module.named_parameters() if n in module.guide]))
    draws = torch.stack(found)
    assert ((draws.mean(0) - exact) / (draws.std(0) / 200**0.5)).abs().max() < 4


@pytest.mark.parametrize("name", LEARNING)
def test_killed_and_resumed_to_the_bit(name):
    module, batch = SmallBernoulli(), rows(n=3)
    estimator = component("gradient", name, n_samples=2, **LEARNING[name])

    def steps(state, rng, n):
        for _ in range(n):
            gradients, _, state = estimator.estimate(module, batch, rng, state)
        return flat(gradients), state

    whole, _ = steps(estimator.init(module, Streams(0)), Streams(0), 9)
    rng = Streams(0)
    _, state = steps(estimator.init(module, Streams(0)), rng, 4)
    kept = {}
    skeleton = pack(state, kept)
    again = unpack(skeleton, kept, estimator.init(module, Streams(7)))
    resumed, _ = steps(again, rng, 5)
    assert torch.equal(resumed, whole)


@pytest.mark.parametrize("name", LEARNING)
def test_inference_killed_and_resumed_from_disk_to_the_bit(name, tmp_path):
    values = {"gradient": {"name": name, **LEARNING[name]}, "n_samples": 2}
    full = expand_component("inference", defaults("inference", "vi") | values, "inference")
    inference, model = (
        build_component("inference", full, "inference"),
        component("model", "vae", latent_dim=2, widths=[4]),
    )
    problem = real_rows(n=12, batch_size=5)
    whole, _ = train(inference, model, problem, 9)
    again, _ = resumed(inference, model, problem, 9, 4, tmp_path)
    assert_close(tensors(whole), tensors(again), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "inference.gradient=vargrad",
            "vargrad is the variance over a row's draws; set inference.n_samples to 2 or more",
        ),
        ("inference.gradient=vargrad_reference", "set inference.n_samples to 2 or more"),
        (
            "inference.gradient=vimco",
            "compares a draw with the row's others; set inference.n_samples to 2 or more",
        ),
        (
            "inference.gradient={name: reinforce_cv, coefficient: sampled}",
            "set inference.n_samples to 2 or more",
        ),
        (
            "inference.gradient={name: reinforce_cv, coefficient: oracle}",
            "inference.gradient.extra_samples: coefficient=oracle is what draws them, and needs them; give a number",
        ),
        ("inference.gradient={name: reinforce_cv, extra_samples: 5}", "leave it null"),
        (
            "inference.gradient={name: reinforce_cv, coefficient: best}",
            "not one of running | sampled | oracle",
        ),
        ("inference.gradient=vargard", "no such gradient, did you mean vargrad?"),
    ],
)
def test_mistakes_are_named_in_one_line(override, message, make_job):
    with pytest.raises(ConfigError) as caught:
        make_job(*VAE_DIGITS, override)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_gradients_that_need_latents_of_rows_are_refused_where_there_are_none(make_job):
    for name in ("vimco", "nvil"):
        with pytest.raises(ConfigError, match=f"inference.gradient={name} needs row_guide"):
            make_job("dataset=gaussian", "model=target_density", "inference=gaussian_vi", "inference.n_samples=3",
                     f"inference.gradient={name}")  # fmt: skip


def test_dotted_keys_on_top_of_a_name(make_job):
    made = make_job(
        *VAE_DIGITS,
        "inference.gradient=nvil",
        "inference.gradient.lr=0.01",
        "inference.n_samples=2",
    )
    assert (made.inference.gradient.lr, made.inference.gradient.n_samples) == (0.01, 2)
