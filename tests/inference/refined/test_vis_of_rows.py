"""Variationally inferred sampling of the latent variables of rows, exact for probabilistic PCA."""

import pytest
import torch
from support.runs.configured import F64, component, compose_component, normal
from support.small.unlabelled_problems import NOISE, D, log_evidence, ppca, real_rows
from support.targets.refined_targets import train_refined, vis
from torch.testing import assert_close

from components.metrics.unlabelled.likelihood_bounds import log_mean_exp
from components.posteriors.latent import LatentPosterior
from runner.execution.rng import Streams

ETA = 0.05
I2 = torch.eye(D, dtype=F64)


def train_steps(inference, problem, module, steps):
    """State and last info of an inference after training."""
    return train_refined(inference, module, problem, steps)[:2]


def precision(module):
    """Λ of p(z|x) = N(μ(x), Λ⁻¹), the same for all rows."""
    W = module.generative.network.layers[0].weight.detach()
    return I2 + W.T @ W / NOISE


def exact_mean(module, x):
    """μ(x) [B, D]."""
    (up,) = module.generative.network.layers
    return torch.linalg.solve(precision(module), up.weight.T @ (x - up.bias)[..., None] / NOISE)[
        ..., 0
    ].detach()


@pytest.mark.parametrize("batch_size", [None, 20])
def test_without_steps_vis_is_variational_auto_encoder(batch_size):
    problem = real_rows(batch_size=batch_size)
    results = {}
    for name in ("vi", "vis"):
        model = component("model", "vae", latent_dim=2, widths=[5]).build(problem, Streams(0))
        inference = compose_component(
            "inference",
            name,
            n_samples=3,
            lr=0.01,
            **({"refine_steps": 0} if name == "vis" else {}),
        )
        results[name] = train_steps(inference, problem, model, 12)
    vi_state, of_vi = results["vi"]
    state, info = results["vis"]
    assert info == of_vi
    assert all(
        torch.equal(a, b)
        for a, b in zip(vi_state.module.parameters(), state.module.parameters(), strict=True)
    )
    assert vis(refine_steps=0).posterior(state).module is state.module


@pytest.mark.parametrize("entropy", ["initial", "jacobian"])
def test_objective_without_jacobian_exceeds_evidence(entropy):
    """Refined from the exact posterior, z_T is too narrow: the mean log joint rises and the entropy
    falls."""
    problem = real_rows(n=30)
    module = ppca(problem, exact_guide=True)
    still = {"optimizer": "sgd", "momentum": 0.0, "lr": 1e-30}
    keys = {"kernel": "sgd", "entropy": entropy, "refine_steps": 3, "eta": ETA, "n_samples": 2000}
    _, info = train_steps(vis(**keys, **still), problem, module, 1)
    exact = float(log_evidence(module, problem.train.x).sum())
    A = torch.linalg.matrix_power(I2 - ETA * precision(module), 3)
    # KL(N(μ, A Λ⁻¹ A) ‖ N(μ, Λ⁻¹)) of each row; VIS-P omits the log determinant
    log_det = float(2 * torch.logdet(A))
    kl = 0.5 * (float((A @ A).trace()) - D - log_det)
    if entropy == "jacobian":
        assert float(info["elbo"]) == pytest.approx(exact - 30 * kl, abs=0.7)
        assert info["elbo"] < exact - 1
    else:
        assert float(info["objective"]) == pytest.approx(
            exact - 30 * kl - 0.5 * 30 * log_det, abs=0.7
        )
        assert info["objective"] > exact + 1


def test_minibatch_is_scaled_to_all_rows():
    problem = real_rows(n=40)
    module = ppca(problem, exact_guide=False)
    keys = {
        "kernel": "sgd",
        "refine_steps": 2,
        "eta": ETA,
        "n_samples": 3000,
        "lr": 1e-30,
        "optimizer": "sgd",
    }
    inference = vis(**keys)
    results = []
    for rows in (slice(0, 20), slice(20, 40), slice(0, 40)):
        state = inference.init(module, problem, Streams(0))
        batch = problem.train.part(rows, 40 / (rows.stop - rows.start))
        results.append(float(inference.step(state, batch, Streams(0))[1]["objective"]))
    assert (results[0] + results[1]) / 2 == pytest.approx(results[2], abs=1.0)


def test_held_out_weights_are_unbiased():
    """m_T = μ + (I − ηΛ)^T (m_0 − μ), s from the encoder; weights are unbiased for p(x), and their
    logarithms are a lower bound."""
    problem = real_rows(n=25)
    module = ppca(problem, exact_guide=False)
    inference = vis(
        kernel="sgld", refine_steps=1, infer_steps=6, eta=ETA, lr=1e-30, optimizer="sgd"
    )
    state, _ = train_steps(inference, problem, module, 0)
    posterior = inference.posterior(state)
    assert isinstance(posterior, LatentPosterior)
    m, s = module.encode(problem.test)
    mean = exact_mean(module, problem.test.x)
    A = torch.linalg.matrix_power(I2 - ETA * precision(module), 6)
    refined, scale = posterior.module.encode(problem.test)
    assert_close(refined, mean + (m - mean) @ A)
    assert torch.equal(scale, s)
    exact = log_evidence(module, problem.test.x)
    with torch.no_grad():
        weights = posterior.row_log_weights(problem.test, 40_000, Streams(0).noise)
    assert_close(log_mean_exp(weights), exact, rtol=0, atol=0.02)
    with torch.no_grad():
        unrefined = LatentPosterior(module).row_log_weights(problem.test, 40_000, Streams(0).noise)
    assert unrefined.mean() < weights.mean() < exact.mean()


def test_decoder_learns_from_refined_draws():
    problem = real_rows(n=30)
    module = ppca(problem, exact_guide=False)
    parameters_before = [p.detach().clone() for p in module.parameters()]
    train_steps(vis(eta=ETA, refine_steps=2, learn_eta=True), problem, module, 3)
    changed = [
        not torch.equal(a, b) for a, b in zip(parameters_before, module.parameters(), strict=True)
    ]
    assert all(changed)


def test_prior_q0_gives_kernel_steps():
    """z_0 ~ N(0, I) for every row, one step of the kernel, and an encoder that does not change."""
    problem = real_rows(n=4)
    module = ppca(problem, exact_guide=True)
    parameters_before = [p.clone() for p in module.guide.parameters()]
    inference = vis(
        kernel="sgd", q0="prior", refine_steps=1, infer_steps=2, eta=ETA, n_samples=3, lr=0.01
    )
    rng = Streams(0)
    state = inference.init(module, problem, rng)
    expected = Streams(0)
    expected.restore(rng.state())
    z = normal(expected.noise, 3, 4, D)
    z = z + ETA * ((exact_mean(module, problem.train.x) - z) @ precision(module))
    with torch.no_grad():
        joint = module.log_joint(problem.train, z).mean(0).sum()
    state, info = inference.step(state, problem.train, rng)
    assert_close(info["log_joint"], joint)
    after_step = module.guide.parameters()
    assert all(torch.equal(a, b) for a, b in zip(parameters_before, after_step, strict=True))
    m, s = inference.posterior(state).module.encode(problem.train)
    centre = exact_mean(module, problem.train.x)
    bend = I2 - ETA * precision(module)
    assert_close(m, centre - centre @ bend @ bend)
    assert torch.equal(s, torch.ones_like(m))
