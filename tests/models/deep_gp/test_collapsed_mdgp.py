"""The deep GP with its top layer integrated out, against its equations written out and the shallow
GPs it starts from."""

from __future__ import annotations

import math

import pytest
import torch
import yaml

from components.contracts.problems import Batch
from components.problems.supervised import Supervised
from components.registry import get
from runner import CONF
from runner.execution.rng import Streams

T, N, D = 3, 24, 2


@pytest.fixture
def problem():
    g = torch.Generator().manual_seed(0)
    x = torch.randn(N, D, generator=g, dtype=torch.float64)
    task = torch.arange(N) % T
    y = torch.full((N, T), math.nan, dtype=torch.float64)
    y[torch.arange(N), task] = torch.sin(x.sum(1)) + 0.1 * torch.randn(
        N, generator=g, dtype=torch.float64
    )
    train = Batch(x, y, ~y.isnan(), 1.0)
    test = Batch(x[:5], y[:5].nan_to_num(), torch.ones(5, T, dtype=torch.bool), 1.0)
    return Supervised("toy", "real", train, test, None, task_names=["a", "b", "c"])


def build(problem, model="collapsed_mdgp", **changes):
    values = yaml.safe_load((CONF / "model" / f"{model}.yaml").read_text()) | changes
    return get("model", model)(**values).build(problem, Streams(0))


def matern52(a, b, lengthscale):
    r = math.sqrt(sum(((x - z) / s) ** 2 for x, z, s in zip(a, b, lengthscale, strict=True)))
    return (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r)


def literal_features(module, x, eps):
    """g_i(x) = x_i + σ Σ_m A_m(x) v_im by loops, A(x) = L⁻¹ κ(Z, x)."""
    inner = module.inner
    Z, ell = inner.inducing, inner.log_lengthscale.exp().tolist()
    M = Z.shape[0]
    K = torch.tensor(
        [[matern52(a, b, ell) for b in Z.tolist()] for a in Z.tolist()], dtype=torch.float64
    )
    L = torch.linalg.cholesky(K + inner.jitter * torch.eye(M, dtype=torch.float64))
    out = []
    for row in x.tolist():
        kappa = torch.tensor([matern52(z, row, ell) for z in Z.tolist()], dtype=torch.float64)
        A = torch.linalg.solve(L, kappa)
        v = inner.q_mean + inner.log_q_scale.exp() * eps
        out.append(
            [
                m + math.exp(0.5 * inner.log_variance) * float(A @ v_i)
                for m, v_i in zip(row, v, strict=True)
            ]
        )
    return torch.tensor(out, dtype=torch.float64)


@pytest.mark.parametrize("top", ["independent", "coregionalised"])
def test_bound_is_its_equation(problem, top):
    """ELBO = S⁻¹ Σ_s log N(y | 0, K(Λ_s) + Σ) − KL[q(v) ‖ N(0, I)], without a hyper-prior."""
    module = build(
        problem, top=top, n_inducing=6, hyperprior=None, top_lengthscale=2.0, inner_q_mean=0.3
    )
    noise = module.draw_noise(problem.train, 2, torch.Generator().manual_seed(1))
    terms = module.elbo(problem.train, noise)
    covariance, total = module.top.covariance, 0.0
    ell = covariance.log_lengthscale.exp().expand(T, -1).tolist()
    task = torch.arange(N) % T
    y = problem.train.y[torch.arange(N), task]
    for eps in noise:
        features = literal_features(module, problem.train.x, eps).tolist()
        K = torch.zeros(N, N, dtype=torch.float64)
        for i in range(N):
            for j in range(N):
                t, s = int(task[i]), int(task[j])
                if top == "coregionalised":
                    K[i, j] = float(covariance.coregionalisation[t, s]) * matern52(
                        features[i], features[j], ell[0]
                    )
                elif t == s:
                    K[i, j] = float(covariance.log_variance[t].exp()) * matern52(
                        features[i], features[j], ell[t]
                    )
        K += torch.diag(module.top.likelihood.noise_variance[task].detach() + module.top.jitter)
        total += (
            torch.distributions.MultivariateNormal(torch.zeros(N, dtype=torch.float64), K)
            .log_prob(y)
            .item()
        )
    mean, sd = module.inner.q_mean, module.inner.log_q_scale.exp()
    prior, q = torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(mean, sd)
    kl = torch.distributions.kl_divergence(q, prior).sum().item()
    assert terms["kl"].item() == pytest.approx(kl, rel=1e-9)
    assert terms["log_likelihood"].item() == pytest.approx(total / 2, rel=1e-7)
    assert terms["elbo"].item() == pytest.approx(total / 2 - kl, rel=1e-7)


@pytest.mark.parametrize(("top", "shallow"), [("independent", "igp"), ("coregionalised", "cgp")])
def test_without_a_warp_it_is_the_shallow_gp(problem, top, shallow):
    """Inner variance → 0 under an identity mean: the bound is the log marginal likelihood of the
    exact GP."""
    deep = build(
        problem,
        top=top,
        n_inducing=6,
        inner_variance=1e-14,
        top_variance=4.0,
        top_lengthscale=2.0,
        jitter=1e-8,
    )
    changes = {"lengthscale": 2.0, "variance": 4.0, "hyperprior": 0.7, "jitter": 1e-8}
    flat = build(problem, shallow, **changes)
    if shallow == "cgp":  # both draw W at random
        flat.covariance.W.data.copy_(deep.top.covariance.W.data)
    noise = deep.draw_noise(problem.train, 1, torch.Generator().manual_seed(1))
    expected = flat.elbo(problem.train, None)
    assert deep.elbo(problem.train, noise)["log_likelihood"].item() == pytest.approx(
        expected["log_likelihood"].item(), abs=1e-5
    )
    x = torch.randn(7, D, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    ours, theirs = (
        deep.sample_predictive(x, 3, torch.Generator()),
        flat.sample_predictive(x, 1, torch.Generator()),
    )
    assert torch.allclose(ours.mean, theirs.mean, atol=1e-5)
    assert torch.allclose(ours.variance, theirs.variance, atol=1e-5)


def test_a_draw_is_one_function(problem):
    """The same draw at the same input gives the same features, whichever batch the input is in."""
    module = build(problem, n_inducing=6)
    (eps,) = module.draw_noise(None, 1, torch.Generator().manual_seed(1))
    whole, _ = module.features(problem.train.x, eps)
    part, _ = module.features(problem.train.x[3:5], eps)
    assert torch.allclose(whole[3:5], part, atol=1e-12)


def test_kl_of_the_wrong_sign_would_be_seen(problem):
    """Training lowers the KL of functions that the labels do not ask for; with its sign flipped it
    would grow."""
    module = build(problem, n_inducing=6, inner_q_mean=2.0)
    start = module.elbo(
        problem.train, module.draw_noise(None, 1, torch.Generator().manual_seed(0))
    )["kl"].item()
    optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(0)
    for _ in range(60):
        optimizer.zero_grad()
        terms = module.elbo(problem.train, module.draw_noise(None, 1, generator))
        (-terms["elbo"]).backward()
        optimizer.step()
    assert terms["kl"].item() < 0.5 * start


def test_gradients(problem):
    """Every parameter, inner ones included, against central differences."""
    module = build(problem, top="independent", n_inducing=4, inner_q_mean=0.5)
    noise = module.draw_noise(None, 1, torch.Generator().manual_seed(3))
    module.elbo(problem.train, noise)["elbo"].backward()
    for name, p in module.named_parameters():
        flat, h = p.data.view(-1), 1e-5
        value = flat[0].item()
        ends = []
        for shifted in (value + h, value - h):
            flat[0] = shifted
            ends.append(module.elbo(problem.train, noise)["elbo"].item())
        flat[0] = value
        assert p.grad.view(-1)[0].item() == pytest.approx(
            (ends[0] - ends[1]) / (2 * h), rel=1e-4, abs=1e-5
        ), name
