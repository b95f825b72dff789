"""The contrastive divergence of rows: literal value, gradient of the guide by quadrature, Fisher's
identity of the decoder."""

import math

import pytest
import torch
from support.runs.configured import component, normal
from support.small.small_problems import train as trained
from support.small.unlabelled_problems import ppca, real_rows
from support.targets.contrastive_divergence import check_contrast
from support.targets.known_targets import F64, z_score
from test_iwae import fisher
from torch.distributions import Normal
from torch.testing import assert_close

from runner.execution.rng import Streams


def vcd(**changes):
    return component("inference", "vcd_dlgm", **changes)


def make_one_dimensional():
    """One row, one latent variable, an affine decoder and N(m, s²) away from the posterior."""
    problem = real_rows(n=1)
    model = component("model", "vae", latent_dim=1, widths=[], noise=0.8)
    module = model.build(problem, Streams(0))
    (down,) = module.guide.network.layers
    with torch.no_grad():
        down.weight.zero_()
        down.bias.copy_(torch.tensor([0.9, math.log(0.5)]))
    return module, problem.train


def flat(gradients):
    return torch.cat([g.flatten() for g in gradients])


def guide_bias(module, gradients):
    """Bias of (m, log s) of the row."""
    names = [name for name, _ in module.named_parameters()]
    return gradients[names.index("guide.network.maps.0.bias")]


@pytest.mark.parametrize("control", [0.0, 2.0])
def test_guide_gradient_matches_quadrature(control):
    module, batch = make_one_dimensional()
    inference = vcd(improve_steps=1, leapfrog_steps=1, n_samples=1500)
    rng = Streams(0)
    results = []
    values = []
    for _ in range(40):
        gradients, info, _ = inference.contrast(module, batch, 0.7, control, rng.noise)
        results.append(-guide_bias(module, gradients))  # the maximised objective is −L_VCD
        values.append(info["vcd"])

    def log_p(z):
        return module.log_joint(batch, z.reshape(-1, 1, 1)).reshape(z.shape)

    check_contrast(log_p, 0.9, 0.5, 0.7, values, results)


def test_value_matches_definition():
    problem = real_rows(n=5)
    module = ppca(problem, exact_guide=False)
    batch = problem.train.part(slice(0, 3), 5 / 3)
    inference = vcd(improve_steps=2, leapfrog_steps=3, n_samples=2)
    _, info, found_gain = inference.contrast(module, batch, 0.3, 0.5, Streams(1).noise)
    repeat = Streams(1).noise
    with torch.no_grad():
        m, s = module.encode(batch)
        z, further = (m + s * normal(repeat, 2, 3, 2) for _ in range(2))
        z_new, _ = inference.improve(module, batch, z, 0.3 * torch.ones_like(m), repeat)
        q = Normal(m, s)
        elbo = (module.log_joint(batch, z).mean(0) + q.entropy().sum(1)).sum() * 5 / 3
        worth = module.log_joint(batch, z_new) - q.log_prob(z_new).sum(2)
        gain = worth - (module.log_joint(batch, further) - q.log_prob(further).sum(2))
    improved = worth.mean(0).sum() * 5 / 3
    assert_close(info["elbo"], elbo)
    assert_close(info["improved"], improved)
    assert_close(info["vcd"], improved - elbo)
    assert found_gain == pytest.approx(float(gain.mean()))


def test_divergence_is_zero_at_the_posterior():
    problem = real_rows(n=6)
    module = ppca(problem, exact_guide=True)
    rng = Streams(0)
    inference = vcd(improve_steps=2, leapfrog_steps=2, n_samples=20)
    split = len(list(module.generative.parameters()))
    of_model = []
    of_guide = []
    values = []
    for _ in range(100):
        gradients, info, _ = inference.contrast(module, problem.train, 0.4, 0.0, rng.noise)
        of_model.append(flat(gradients[:split]))
        of_guide.append(flat(gradients[split:]))
        values.append(info["vcd"])
    assert abs(z_score(torch.stack(values), torch.zeros((), dtype=F64))) < 4
    exact = fisher(module, problem.train.x)
    assert z_score(torch.stack(of_model), exact).abs().max() < 4.5
    zero = torch.zeros_like(of_guide[0])
    assert z_score(torch.stack(of_guide), zero).abs().max() < 4.5


def test_control_averages_past_steps():
    problem = real_rows(n=12, batch_size=6)
    vae = component("model", "vae", latent_dim=2, widths=[4])
    inference = vcd(improve_steps=2, leapfrog_steps=2, lr=0.02)
    state, rng = trained(inference, vae, problem, 6)
    assert state.control != 0
    assert state.eps != 0.05
    noise = rng.noise.get_state()
    *_, gain = inference.contrast(state.module, problem.train, state.eps, state.control, rng.noise)
    rng.noise.set_state(noise)
    control = state.control
    after, _ = inference.step(state, problem.train, rng)
    assert after.control == pytest.approx(0.9 * control + 0.1 * gain)
    assert "nelbo" in problem.score(inference.posterior(after), rng)
