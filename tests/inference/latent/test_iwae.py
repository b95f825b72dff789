"""The importance-weighted bound on probabilistic PCA with known log p(x): order, tightness, and two
gradients with equal mean."""

import math

import pytest
import torch
from support.runs.configured import F64, component, normal
from support.small.small_problems import train as trained
from support.small.unlabelled_problems import best_likelihood, log_evidence, ppca, real_rows
from torch.distributions import MultivariateNormal, Normal
from torch.testing import assert_close

from components.inference.latent.iwae import weighed
from components.metrics.unlabelled.likelihood_bounds import log_mean_exp
from components.models.latent.generative import log_normal
from runner.execution.rng import Streams

N = 12
ENCODER = {"widths": [8], "lr": 0.02, "n_samples": 8, "initial_std": 0.5}


@pytest.fixture
def problem():
    return real_rows(n=N)


def gradients(module, batch, K, way, generator):
    """Gradients of the sum over rows with respect to every parameter [P]."""
    actual = torch.autograd.grad(
        weighed(module, batch, K, way, generator)[1], list(module.parameters())
    )
    return torch.cat([g.flatten() for g in actual])


def test_weights_match_density_ratio(problem):
    module = ppca(problem, exact_guide=False)
    batch = problem.train
    for way in ("reparam", "dreg"):
        log_w, objective = weighed(module, batch, 3, way, Streams(2).noise)
        with torch.no_grad():
            m, s = module.encode(batch)
            noise = normal(Streams(2).noise, 3, N, 2)
            z = m + s * noise
            (up,) = module.generative.network.layers
            eye = torch.eye(4, dtype=F64)
            p = MultivariateNormal(
                z @ up.weight.T + up.bias, module.generative.log_noise.exp() * eye
            ).log_prob(batch.x)
            prior = Normal(torch.zeros(()).double(), 1.0).log_prob(z).sum(-1)
            expected = p + prior - Normal(m, s).log_prob(z).sum(-1)
        assert_close(log_w, expected)
        if way == "reparam":
            assert_close(objective, expected.exp().sum(0).log().sum())


@pytest.mark.parametrize("way", ["reparam", "dreg"])
@pytest.mark.parametrize("K", [1, 6])
def test_exact_guide_has_likelihood_as_bound(problem, way, K):
    """Every weight is p(x), independent of the draws and, with dreg, of the guide's parameters."""
    module = ppca(problem, exact_guide=True)
    log_w, objective = weighed(module, problem.train, K, way, Streams(0).noise)
    assert_close(log_w, log_evidence(module, problem.train.x).expand(K, -1))
    if way == "dreg":
        actual = torch.autograd.grad(objective, list(module.guide.parameters()))
        assert max(float(g.abs().max()) for g in actual) < 1e-9


def test_bounds_rise_with_k_to_likelihood(problem):
    module = ppca(problem, exact_guide=False)
    exact = log_evidence(module, problem.train.x)
    many = 4_096
    with torch.no_grad():
        log_w = weighed(module, problem.train, many, "reparam", Streams(0).noise)[0]
    results = []
    for K in (1, 4, 32, 512):
        # L̂^K of independent sets, summed over rows
        each = log_mean_exp(log_w.view(K, -1, N)).mean(1)
        results.append((float(each.mean()), float(each.std()) / (many / K) ** 0.5))
    means = [mean for mean, _ in results]
    assert means == sorted(means)
    assert means[1] - means[0] > 5 * results[0][1]
    assert means[0] < float(exact.mean()) - 0.05
    assert means[-1] == pytest.approx(float(exact.mean()), abs=0.03)


def fisher(module, x):
    """∇_θ Σ_b log p(x_b), differentiated through the marginal [P_θ]."""
    (up,) = module.generative.network.layers
    eye = torch.eye(x.shape[1], dtype=x.dtype)
    law = MultivariateNormal(
        up.bias, up.weight @ up.weight.T + module.generative.log_noise.exp() * eye
    )
    parameters = list(module.generative.parameters())
    return torch.cat([g.flatten() for g in torch.autograd.grad(law.log_prob(x).sum(), parameters)])


def z_scores(draws, mean):
    draws = torch.stack(draws)
    return (draws.mean(0) - mean) / (draws.std(0) / len(draws) ** 0.5 + 1e-12)


@pytest.mark.parametrize("way", ["reparam", "dreg"])
def test_exact_guide_gives_likelihood_gradient(problem, way):
    module = ppca(problem, exact_guide=True)
    rng = Streams(0)
    n = sum(p.numel() for p in module.generative.parameters())
    draws = [gradients(module, problem.train, 3, way, rng.noise)[:n] for _ in range(300)]
    assert z_scores(draws, fisher(module, problem.train.x)).abs().max() < 4


def test_both_gradients_have_equal_mean(problem):
    """For the generative model they are equal at any noise; for the guide their difference has mean
    0."""
    module = ppca(problem, exact_guide=False)
    n = sum(p.numel() for p in module.generative.parameters())
    both = [Streams(1), Streams(1)]
    differences = []
    spread = []
    for _ in range(600):
        pair = [
            gradients(module, problem.train, 5, w, r.noise)
            for w, r in zip(("reparam", "dreg"), both, strict=True)
        ]
        assert_close(pair[0][:n], pair[1][:n])
        differences.append((pair[0] - pair[1])[n:])
        spread.append(torch.stack(pair)[:, n:])
    assert torch.stack(differences).std(0).min() > 0.01, "a test of something"
    assert z_scores(differences, 0.0).abs().max() < 4
    variances = torch.stack(spread).var(0).sum(-1)
    assert variances[1] < 0.5 * variances[0], "what dreg is for"


def test_guide_gradient_is_doubly_reparameterised(problem):
    module = ppca(problem, exact_guide=False)
    batch = problem.train
    K = 4
    guide = list(module.guide.parameters())
    actual = torch.autograd.grad(weighed(module, batch, K, "dreg", Streams(5).noise)[1], guide)
    noise = normal(Streams(5).noise, K, N, 2)
    m, s = module.encode(batch)
    z = m + s * noise
    point = z.detach().requires_grad_()
    log_w = module.log_joint(batch, point) - log_normal(point, m.detach(), s.detach())
    share = log_w.detach().exp() / log_w.detach().exp().sum(0)
    (slope,) = torch.autograd.grad(log_w.sum(), point)
    expected = torch.autograd.grad((share.square()[..., None] * slope * z).sum(), guide)
    for a, b in zip(actual, expected, strict=True):
        assert_close(a, b)


@pytest.mark.parametrize("way", ["reparam", "dreg"])
def test_step_names_bound_by_number_of_samples(problem, way):
    inference = component("inference", "iwae", n_samples=7, gradient=way)
    module = ppca(problem, exact_guide=False)
    state = inference.init(module, problem, Streams(0))
    exact = float(log_evidence(module, problem.train.x).sum())
    _, info = inference.step(state, problem.train, Streams(3))
    log_w = weighed(ppca(problem, exact_guide=False), problem.train, 7, way, Streams(3).noise)[0]
    assert float(info["multi_sample_bound_7"]) == pytest.approx(
        float((log_w.logsumexp(0) - math.log(7)).sum().detach())
    )
    assert float(info["elbo"]) == pytest.approx(float(log_w.mean(0).sum().detach()))
    assert info["elbo"] < info["multi_sample_bound_7"] < exact + 5


@pytest.mark.parametrize(
    ("name", "steps", "keys"),
    [
        ("iwae", 400, {"n_samples": 5, "lr": 0.03}),
        ("hmc_dlgm", 500, {"n_samples": 4, "lr": 0.03, "improve_steps": 2, "leapfrog_steps": 3}),
        pytest.param("sivi", 800, ENCODER, marks=pytest.mark.slow),
        pytest.param("uivi", 800, ENCODER, marks=pytest.mark.slow),
    ],
)
def test_training_reaches_maximum_likelihood(problem, name, steps, keys):
    """The maximum of probabilistic PCA is known (Tipping and Bishop 1999, eq. 8)."""
    vae = component("model", "vae", latent_dim=2, widths=[], noise=0.3)
    state, _ = trained(component("inference", name, **keys), vae, problem, steps)
    module = state.q.model if hasattr(state, "q") else state.module
    likelihood = float(log_evidence(module, problem.train.x).mean())
    assert likelihood == pytest.approx(best_likelihood(problem.train.x), abs=0.05)
