"""Semi-implicit encoders of rows on probabilistic PCA: literal bound, weights with mean p(x),
gradients of the exact ELBO, and their learning."""

import math

import pytest
import torch
from support.runs.configured import component, double, normal
from support.small.unlabelled_problems import gaussian_elbo, log_evidence, ppca, real_rows
from support.targets.affine_families import gradients
from support.targets.known_targets import F64, z_score
from torch.distributions import Normal
from torch.testing import assert_close

from components.contracts.capabilities import Decoder, LatentVariable
from runner.execution.rng import Streams

WEIGHT = double([[0.5, 0.1], [-0.3, 0.4]])  # W of ε
STD = double([0.4, 0.6])


def affine(name, problem, **changes):
    """Inference with q fixed at q(z|x) = ∫ N(A x + W ε + c, diag s²), its state and its streams."""
    still = {"optimizer": "sgd", "momentum": 0.0, "lr": 1e-30}
    inference = component("inference", name, **{"widths": [], "noise_dim": 2, **still, **changes})
    rng = Streams(0)
    model = ppca(problem, exact_guide=True)
    state = inference.init(model, problem, rng)
    (layer,) = state.q.network.layers
    (down,) = model.guide.network.layers
    with torch.no_grad():
        layer.weight.copy_(torch.cat([down.weight[:2] + 0.05, WEIGHT], 1))
        layer.bias.copy_(down.bias[:2] - 0.1)
        state.q.log_std.copy_(STD.log())
    return inference, state, rng


def means(module, x):
    """A x + c [B, D]."""
    (layer,) = module.network.layers
    return x @ layer.weight[:, : x.shape[1]].T + layer.bias


def exact_elbo(module, x):
    """``gaussian_elbo`` of the marginal q."""
    (layer,) = module.network.layers
    mixing = layer.weight[:, x.shape[1] :]
    C = mixing @ mixing.T + (2 * module.log_std).exp().diag()
    return gaussian_elbo(module.model.generative, x, means(module, x), C)


def learnable_parameters(module):
    """Parameters that a step changes: all except the model's own encoder."""
    return [p for name, p in module.named_parameters() if not name.startswith("model.guide")]


def exact_gradient(state, x):
    actual = torch.autograd.grad(exact_elbo(state.q, x), learnable_parameters(state.q))
    return torch.cat([g.flatten() for g in actual])


def test_bound_matches_definition():
    problem = real_rows(n=3)
    inference, state, rng = affine("sivi", problem, n_samples=2, extra_samples=3)
    repeat = Streams(0).noise
    repeat.set_state(rng.noise.get_state())
    batch = problem.train.part(slice(0, 2), 1.5)
    _, info = inference.step(state, batch, rng)
    epsilon, u, others = (normal(repeat, n, 2, 2) for n in (2, 2, 3))
    total = 0.0
    with torch.no_grad():
        for b, m in enumerate(means(state.q, batch.x)):
            for s in range(2):
                z = m + WEIGHT @ epsilon[s, b] + STD * u[s, b]
                density = 0.0
                for e in [epsilon[s, b], *others[:, b]]:
                    log_q = Normal(m + WEIGHT @ e, STD).log_prob(z).sum()
                    density += float(log_q.exp()) / 4
                row = batch.part(slice(b, b + 1), 1.0)
                joint = float(state.q.model.log_joint(row, z[None, None]))
                total += 1.5 * (joint - math.log(density)) / 2
    assert float(info["elbo"]) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("K", [0, 3])
def test_mean_weight_is_likelihood(K):
    problem = real_rows(n=2)
    inference, state, rng = affine("sivi", problem, bound_samples=K)
    posterior = inference.posterior(state)
    n = 150
    w = torch.stack([posterior.row_log_weights(problem.train, 50, rng.noise) for _ in range(n)])
    ratio = (w - log_evidence(state.q.model, problem.train.x)).exp().mean(1)  # [n, B]
    assert z_score(ratio, torch.ones(2, dtype=F64)).abs().max() < 4
    exact = float(exact_elbo(state.q, problem.train.x).detach())
    spread = float(w.sum(2).mean(1).std()) / n**0.5
    assert w.sum(2).mean() < exact + 4 * spread < log_evidence(state.q.model, problem.train.x).sum()


def test_weights_require_own_conditional():
    problem = real_rows(n=2)
    _, state, rng = affine("sivi", problem)
    q = state.q.given(problem.train)
    K = 3
    ratios = []
    with torch.no_grad():
        for _ in range(120):
            z = q.mean(q.mixing(50, rng.noise)) + q.std * q.conditional(50, rng.noise)
            others = q.log_pairs(z, q.mean(q.mixing(K, rng.noise))).logsumexp(1) - math.log(K)
            w = state.q.model.log_joint(problem.train, z) - others
            ratios.append((w - log_evidence(state.q.model, problem.train.x)).exp().mean(0))
    assert (torch.stack(ratios).median(0).values - 1).abs().min() > 0.1


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("sivi", {"extra_samples": 500}),
        (
            "uivi",
            {"reverse_burn_in": 12, "reverse_samples": 2, "leapfrog_steps": 4, "step_size": 0.35},
        ),
    ],
)
def test_gradients_match_exact_elbo(name, keys):
    problem = real_rows(n=6)
    inference, state, rng = affine(name, problem, n_samples=100, **keys)
    batch = problem.train.part(slice(0, 3), 2.0)
    estimate = gradients(inference, state, rng, 25, learnable_parameters, batch)
    exact = exact_gradient(state, batch.x) / batch.n_rows
    assert z_score(estimate, exact).abs().max() < 4.5


def test_conditional_changes_the_gradient(monkeypatch):
    """UIVI without chain moves estimates the gradient of the ELBO of q(z|ε), not of q."""
    problem = real_rows(n=6)
    inference, state, rng = affine("uivi", problem, n_samples=100)

    def still(q, z, epsilon, eps, generator):
        with torch.no_grad():
            return -(z - q.mean(epsilon)) / q.std.square(), torch.tensor(0.9)

    monkeypatch.setattr(type(inference), "estimate_score_function", staticmethod(still))
    estimate = gradients(inference, state, rng, 25, learnable_parameters, problem.train)
    exact = exact_gradient(state, problem.train.x) / problem.n
    assert z_score(estimate, exact).abs().max() > 10


def test_scores_use_moment_matched_gaussian():
    problem = real_rows(n=4)
    inference, state, _ = affine("sivi", problem)
    module = inference.posterior(state).module
    assert isinstance(module, LatentVariable)
    assert isinstance(module, Decoder)
    m, s = module.encode(problem.train)
    with torch.no_grad():
        shift = module.guide.noise @ WEIGHT.T
        centre = means(state.q, problem.train.x) + shift.mean(0)
    assert_close(m, centre)
    variance = (shift.var(0, correction=0) + STD.square()).expand(4, 2)
    assert_close(s.square(), variance)
    assert module.sample_latent(3, Streams(0).noise).shape == (3, 2)
    repeat = inference.posterior(state).module.encode(problem.train)
    assert torch.equal(m, repeat[0])


def test_model_encoder_is_unused():
    problem = real_rows(n=4)
    for name in ("sivi", "uivi"):
        inference, state, rng = affine(name, problem, lr=0.1)
        parameters_before = [p.clone() for p in state.q.model.guide.parameters()]
        state, _ = inference.step(state, problem.train, rng)
        after = state.q.model.guide.parameters()
        assert all(torch.equal(a, b) for a, b in zip(parameters_before, after, strict=True))
