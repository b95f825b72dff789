"""Discrete variational auto-encoders: normalised densities, a valid bound, and the offered
capabilities."""

import pytest
import torch
from support.runs.configured import F64, component, double, generator
from support.small.small_bernoulli import binary_rows, enumerated_elbo, every_z, small_dvae
from torch.autograd import grad
from torch.distributions import Bernoulli
from torch.testing import assert_close

from components.contracts.problems import Rows
from components.posteriors.latent import LatentPosterior
from runner.execution.rng import Streams

LAYERS = pytest.mark.parametrize("layers", [1, 2])
ARCHITECTURES = pytest.mark.parametrize("architecture", ["linear", "nonlinear"])


@LAYERS
@ARCHITECTURES
def test_densities_sum_to_one(layers, architecture):
    problem = binary_rows(n=2)
    module = small_dvae(problem, layers, architecture=architecture)
    z = tuple(layer.expand(-1, 2, -1) for layer in every_z(layers))
    assert_close(module.log_q(problem.train, z).exp().sum(0), torch.ones(2).double())
    x = torch.cartesian_prod(*4 * [double([0.0, 1.0])])  # all 16 rows
    z = tuple(layer.expand(-1, 16, -1) for layer in every_z(layers))
    assert_close(module.log_joint(Rows(x, 1.0), z).exp().sum(), torch.ones(()).double())


def test_factors_equal_their_formulas():
    """log p(z_2) + log p(z_1|z_2) + log p(x|z_1) and log q(z_1|x) + log q(z_2|z_1), by torch's
    distributions."""
    problem = binary_rows(n=5)
    module = small_dvae(problem)
    x = problem.train.x
    z1, z2 = module.sample(problem.train, 7, Streams(0).noise)

    def coin(logits, value):
        return Bernoulli(logits=logits).log_prob(value).sum(-1)

    joint = (
        coin(module.prior_logits, z2)
        + coin(module.up[0](z2), z1)
        + coin(module.visible.network(z1), x)
    )
    guide = coin(module.down[0](x), z1) + coin(module.down[1](z1), z2)
    assert_close(module.log_joint(problem.train, (z1, z2)), joint)
    assert_close(module.log_q(problem.train, (z1, z2)), guide)
    assert z1.shape == z2.shape == (7, 5, 3)


@LAYERS
def test_draws_in_one_pass_equal_those_of_two(layers):
    problem = binary_rows(n=4)
    module = small_dvae(problem, layers)
    z, log_q = module.sample_with_log_q(problem.train, 7, Streams(0).noise)
    alone = module.sample(problem.train, 7, Streams(0).noise)
    assert all(torch.equal(a, b) and not a.requires_grad for a, b in zip(z, alone, strict=True))
    expected = module.log_q(problem.train, alone)
    assert_close(log_q, expected)
    parameters = [p for network in module.down for p in network.parameters()]
    for first, two in zip(*(grad(v.sum(), parameters) for v in (log_q, expected)), strict=True):
        assert_close(first, two)
    many, _ = module.sample_with_log_q(problem.train, 20_000, Streams(1).noise)
    p = module.logits(problem.train, [])[0].sigmoid()
    assert ((many[0].mean(0) - p).abs() < 4.5 * (p * (1 - p) / 20_000).sqrt()).all()


@LAYERS
@ARCHITECTURES
@pytest.mark.parametrize("prior", ["half", "learned"])
@pytest.mark.parametrize("n_samples", [1, 5])
def test_analytic_derivative_equals_autograd(layers, architecture, prior, n_samples):
    """Σ_sb u_sb ∇log q + v_sb ∇log p at the draws of ``sample``; densities are equal bit by bit."""
    problem = binary_rows(n=4)
    u_v = torch.randn(2, n_samples, 4, generator=generator(0)).double()
    module = small_dvae(problem, layers, architecture=architecture, prior=prior)
    log_q, log_joint, pull_back = module.draw_with_derivative(
        problem.train, n_samples, Streams(0).noise
    )
    z, expected = module.sample_with_log_q(problem.train, n_samples, Streams(0).noise)
    joint = module.log_joint(problem.train, z)
    assert torch.equal(log_q, expected)
    assert torch.equal(log_joint, joint)
    assert not log_q.requires_grad
    result = pull_back(*u_v)
    recorded = grad((expected, joint), list(module.parameters()), list(u_v))
    for g, other in zip(result, recorded, strict=True):
        assert not g.requires_grad
        assert_close(g, other, rtol=1e-10, atol=1e-12)


def test_scores_equal_those_of_the_enumerated_model():
    """−E_q log w, and for S = 2 weights −E log ½ (w_1 + w_2) over all pairs of states, both
    averaged over the rows."""
    problem = binary_rows(n=4)
    copies = 6000
    module = small_dvae(problem)
    with torch.no_grad():
        z = tuple(layer.expand(-1, 4, -1) for layer in every_z())
        log_q = module.log_q(problem.train, z)
        log_w = module.log_joint(problem.train, z) - log_q  # [64, B]
        pairs = (log_q[:, None] + log_q[None]).exp() * torch.logaddexp(log_w[:, None], log_w[None])
        bound = -(pairs.sum((0, 1)) - double(2.0).log()).mean()
        elbo = float(enumerated_elbo(module, problem.train))
    problem.test = Rows(problem.train.x.repeat(copies, 1), 1.0)
    problem.importance_samples = 2
    problem.evaluation_chunk = 1000
    weights = problem.log_weights(LatentPosterior(module), Streams(0))  # [2, 4 copies]
    scores = problem.score(LatentPosterior(module), Streams(0))
    error = float(weights.std()) / copies**0.5
    assert scores["nelbo"] == pytest.approx(-elbo / 4, abs=4 * error)
    assert scores["nll_bound"] == pytest.approx(float(bound), abs=4 * error)
    assert scores["nelbo"] > scores["nll_bound"] + 8 * error


def test_prior_draws_have_the_mean_of_the_model():
    module = small_dvae(binary_rows())
    z = module.sample_latent(40_000, Streams(0).noise)
    z2 = torch.cartesian_prod(*3 * [double([0.0, 1.0])])
    weight = (
        (z2 * module.prior_logits - torch.nn.functional.softplus(module.prior_logits)).sum(-1).exp()
    )
    exact = (weight[:, None] * module.up[0](z2).sigmoid()).sum(0)
    assert ((z.mean(0) - exact).abs() < 4 * z.std(0) / 200).all()
    assert module.decode(z).shape == (40_000, 4)


def test_relaxed_values_have_gradients():
    problem = binary_rows(n=2)
    module = small_dvae(problem)
    z = tuple(torch.full((3, 2, 3), 0.4, dtype=F64, requires_grad=True) for _ in range(2))
    slopes = grad((module.log_joint(problem.train, z) - module.log_q(problem.train, z)).sum(), z)
    assert all(bool(slope.abs().min() > 0) for slope in slopes)


@LAYERS
@ARCHITECTURES
@pytest.mark.parametrize("prior", ["half", "learned"])
def test_initial_bias_follows_data_without_global_random_state(layers, architecture, prior):
    problem = binary_rows(n=30)
    model = component(
        "model", "dvae", layers=layers, architecture=architecture, units=5, prior=prior
    )
    rng_state = torch.random.get_rng_state()
    module = model.build(problem, Streams(0))
    assert torch.equal(torch.random.get_rng_state(), rng_state)
    assert torch.equal(module.prior_logits, torch.zeros(5).double())
    assert ("prior_logits" in dict(module.named_parameters())) == (prior == "learned")
    (last,) = [network.layers[-1].bias for network in [module.visible.network]]
    assert_close(last.sigmoid(), problem.train.x.mean(0).clamp(1e-3, 1 - 1e-3))
    other = model.build(problem, Streams(0))
    assert_close(list(module.parameters()), list(other.parameters()), rtol=0, atol=0)
