"""Variational auto-encoders: probabilistic PCA as the exact case, the order of bounds, layers and
initial values."""

import pytest
import torch
from support.runs.configured import F64, build_model, component
from support.small.unlabelled_problems import exact_elbo, log_evidence, ppca, real_rows
from torch.distributions import Bernoulli, Normal
from torch.testing import assert_close

from components.contracts.problems import Rows
from components.metrics.unlabelled.likelihood_bounds import log_mean_exp
from components.posteriors.latent import LatentPosterior
from components.problems.unlabelled import Unlabelled
from runner.execution.rng import Streams


@pytest.fixture
def problem():
    return real_rows(n=25)


def test_weights_with_the_exact_posterior_are_the_likelihood(problem):
    module = ppca(problem, exact_guide=True)
    with torch.no_grad():
        w = LatentPosterior(module).row_log_weights(problem.test, 50, Streams(0).noise)
    assert w.shape == (50, 25)
    assert_close(w, log_evidence(module, problem.test.x).expand(50, 25), rtol=1e-10, atol=1e-10)


def test_importance_weights_close_the_gap_of_a_wrong_guide(problem):
    module = ppca(problem, exact_guide=False)
    exact = log_evidence(module, problem.test.x)
    with torch.no_grad():
        # [S, B]
        w = LatentPosterior(module).row_log_weights(problem.test, 40_000, Streams(0).noise)
    elbo = w.mean(0)
    assert (exact - elbo).min() > 0.05
    bounds = [
        log_mean_exp(w.unflatten(0, (-1, s)).transpose(0, 1).flatten(1)).view(-1, 25).mean(0)
        for s in (5, 50)
    ]
    assert (elbo < bounds[0]).all()
    assert (bounds[0] < bounds[1]).all()
    assert (bounds[1] < exact + 0.01).all()
    assert_close(log_mean_exp(w), exact, rtol=0, atol=0.05)


def test_bound_through_noise_has_the_closed_form_mean(problem):
    module = ppca(problem, exact_guide=False)
    with torch.no_grad():
        rows = module.elbo_rows(
            problem.train, module.draw_noise(problem.train, 20_000, Streams(0).noise)
        ).sum(1)
        exact = exact_elbo(module, problem.train.x)
    assert abs(float((rows.mean() - exact) / (rows.std() / len(rows) ** 0.5))) < 4


def test_densities_equal_torch(problem):
    module = build_model("vae", problem, latent_dim=3, widths=[6])
    z = torch.randn(4, 25, 3, dtype=F64)
    normal = Normal
    m, s = module.encode(problem.train)
    assert_close(module.log_q(problem.train, z), normal(m, s).log_prob(z).sum(-1))
    decoded = normal(module.decode(z), (0.5 * module.generative.log_noise).exp())
    joint = decoded.log_prob(problem.train.x).sum(-1) + normal(0.0, 1.0).log_prob(z).sum(-1)
    assert_close(module.log_joint(problem.train, z), joint)

    binary = Unlabelled(
        "b", "binary", *(Rows((r.x > 0).double(), 1.0) for r in (problem.train, problem.test)), None
    )
    module = build_model("vae", binary, latent_dim=3, widths=[6])
    coins = Bernoulli(module.decode(z)).log_prob(binary.train.x).sum(-1)
    assert_close(module.log_joint(binary.train, z), coins + normal(0.0, 1.0).log_prob(z).sum(-1))


def test_network_has_its_widths_without_global_random_state(problem):
    model = component("model", "vae", latent_dim=2, widths=[5, 4])
    rng_state = torch.random.get_rng_state()
    module = model.build(problem, Streams(0))
    assert torch.equal(torch.random.get_rng_state(), rng_state)
    assert [len(layer.bias) for layer in module.generative.network.layers] == [5, 4, 4]
    assert [len(layer.bias) for layer in module.guide.network.layers] == [4, 5, 4]
    other = model.build(problem, Streams(0))
    assert_close(list(module.parameters()), list(other.parameters()), rtol=0, atol=0)


def test_rows_of_any_shape_are_supported(problem):
    images = Unlabelled(
        "i", "real", *(Rows(r.x.view(25, 2, 2), 1.0) for r in (problem.train, problem.test)), None
    )
    module = build_model("vae", images, latent_dim=2, widths=[5])
    flat = build_model("vae", problem, latent_dim=2, widths=[5])
    z = module.sample(images.train, 3, Streams(0).noise)
    assert module.decode(z).shape == (3, 25, 2, 2)
    assert torch.equal(module.log_joint(images.train, z), flat.log_joint(problem.train, z))


def test_separate_networks_use_a_softplus_variance(problem):
    """Gallego (2021), Figure 2.12: m and s² = softplus(a) of networks without shared parameters."""
    model = component(
        "model", "vae", latent_dim=3, widths=[6, 5], guide="separate", scale="softplus"
    )
    module = model.build(problem, Streams(0))
    means = module.guide.network
    variances = module.guide.second
    assert (
        [len(layer.bias) for layer in means.layers]
        == [len(layer.bias) for layer in variances.layers]
        == [5, 6, 3]
    )
    m, s = module.encode(problem.train)
    assert_close(m, means(problem.train.x))
    assert_close(s.square(), (1 + variances(problem.train.x).exp()).log())
    parameters = set(means.parameters())
    assert not parameters & set(variances.parameters())
    m.sum().backward()
    assert all(p.grad is None for p in variances.parameters())
    shared = build_model("vae", problem, latent_dim=3, widths=[6, 5], scale="softplus")
    m, a = shared.guide.network(problem.train.x).chunk(2, -1)
    assert_close(shared.encode(problem.train)[1], torch.nn.functional.softplus(a).sqrt())
