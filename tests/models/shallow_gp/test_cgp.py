"""cgp: against loops and Kronecker algebra, GPyTorch's index kernel, igp where they coincide,
sparse against exact."""

from __future__ import annotations

import math

import gpytorch
import pytest
import torch
from support.runs.configured import generator
from support.small.shallow_gp_problems import (
    F64,
    gradient_error,
    problem,
    scatter_parameters,
    set_optimal_q,
    streams,
)
from support.small.small_problems import component

from components.contracts.problems import Batch
from components.models.shallow_gp.exact import ExactGP
from components.models.shallow_gp.sparse import SparseGP
from components.problems.supervised import Supervised

PLAIN = {"hyperprior": None, "lengthscale": 1.5, "variance": 1.0, "jitter": 1e-12}


def exact(p: Supervised, **changes) -> ExactGP:
    return component("model", "cgp", **{**PLAIN, **changes}).build(p, streams())


def sparse(p: Supervised, **changes) -> SparseGP:
    return component("model", "cgp", **{**PLAIN, "posterior": "sparse", **changes}).build(
        p, streams()
    )


def matern52(x: torch.Tensor, z: torch.Tensor, ell: torch.Tensor) -> float:
    s = math.sqrt(5 * sum(float((x[d] - z[d]) / ell[d]) ** 2 for d in range(len(x))))
    return (1 + s + s * s / 3) * math.exp(-s)


@torch.no_grad()
def literally(module: ExactGP, p: Supervised) -> tuple[float, torch.Tensor, torch.Tensor]:
    """Log marginal likelihood, and predictive means and variances [B, T], label by label from
    Bonilla et al. eq. (1)."""
    W, kappa = module.covariance.W, module.covariance.log_kappa.exp()
    ell = module.covariance.log_lengthscale[0].exp().expand(p.n_inputs)
    noise = module.likelihood.noise_variance
    T = p.n_tasks
    B = torch.tensor(
        [
            [
                sum(float(W[s, r] * W[t, r]) for r in range(W.shape[1]))
                + (float(kappa[s]) if s == t else 0.0)
                for t in range(T)
            ]
            for s in range(T)
        ],
        dtype=F64,
    )
    labels = [(i, t) for i in range(p.n) for t in range(T) if p.train.mask[i, t]]
    x, y = p.train.x, torch.stack([p.train.y[i, t] for i, t in labels])
    C = torch.tensor(
        [[float(B[s, t]) * matern52(x[i], x[j], ell) for j, t in labels] for i, s in labels],
        dtype=F64,
    )
    C += torch.diag(noise[[t for _, t in labels]])
    inverse = torch.linalg.inv(C)
    marginal = (
        -0.5 * y @ inverse @ y - 0.5 * torch.logdet(C) - 0.5 * len(labels) * math.log(2 * math.pi)
    )
    mean, variance = torch.zeros_like(p.test.y), torch.zeros_like(p.test.y)
    for b, new in enumerate(p.test.x):
        for t in range(T):
            k = torch.tensor(
                [float(B[s, t]) * matern52(x[i], new, ell) for i, s in labels], dtype=F64
            )
            mean[b, t] = k @ inverse @ y
            variance[b, t] = B[t, t] - k @ inverse @ k + noise[t]
    return float(marginal), mean, variance


@pytest.mark.parametrize(("ard", "rank"), [("none", 1), ("shared", 2)])
def test_exact_literally_with_missing_labels(ard, rank):
    p = problem(n=14)
    module = exact(p, ard=ard, rank=rank)
    scatter_parameters(module)
    marginal, mean, variance = literally(module, p)
    with torch.no_grad():
        ours = module.sample_predictive(p.test.x, 1, torch.Generator())
        assert float(module.elbo(p.train, None)["elbo"]) == pytest.approx(marginal, abs=1e-8)
    assert torch.allclose(ours.mean, mean, atol=1e-8)
    assert torch.allclose(ours.variance, variance, atol=1e-8)


def test_all_labels_are_a_kronecker_product():
    # With every label observed, the covariance of vec(Y) is B ⊗ K + diag(σ²) ⊗ I: Bonilla et al.
    # (2007), eq. (3).
    p = problem(n=12, keep=1.0)
    module = exact(p, rank=2)
    scatter_parameters(module)
    with torch.no_grad():
        one = torch.zeros(1, 12, dtype=torch.long)
        K = (
            module.covariance.matrix(p.train.x[None], one, p.train.x[None], one)[0]
            / module.covariance.coregionalisation[0, 0]
        )
        C = torch.kron(module.covariance.coregionalisation, K) + torch.kron(
            torch.diag(module.likelihood.noise_variance), torch.eye(12, dtype=F64)
        )
        y = p.train.y.T.reshape(-1)
        expected = torch.distributions.MultivariateNormal(torch.zeros(36, dtype=F64), C).log_prob(y)
        assert float(module.elbo(p.train, None)["elbo"]) == pytest.approx(float(expected), abs=1e-7)


def test_exact_is_gpytorchs_index_kernel():
    p = problem(n=20)
    module = exact(p, ard="none", rank=2)
    scatter_parameters(module)
    data, index = (
        gpytorch.kernels.MaternKernel(nu=2.5).double(),
        gpytorch.kernels.IndexKernel(num_tasks=3, rank=2).double(),
    )
    with torch.no_grad():
        data.lengthscale = module.covariance.log_lengthscale.exp()
        index.covar_factor.copy_(module.covariance.W)
        index.var = module.covariance.log_kappa.exp()
        row, task = p.train.mask.nonzero(as_tuple=True)
        x, y = p.train.x[row], p.train.y[row, task]
        C = (data(x) * index(task[:, None])).to_dense() + torch.diag(
            module.likelihood.noise_variance[task]
        )
        expected = gpytorch.distributions.MultivariateNormal(torch.zeros_like(y), C).log_prob(y)
        assert float(module.elbo(p.train, None)["elbo"]) == pytest.approx(float(expected), abs=1e-5)


def test_diagonal_coregionalisation_is_igp():
    p = problem()
    independent = component("model", "igp", **PLAIN, ard="shared").build(p, streams())
    scatter_parameters(independent)
    joint = exact(p, ard="shared", rank=3)
    v = independent.covariance.log_variance.exp().detach()
    state = joint.state_dict() | {
        "covariance.log_lengthscale": independent.covariance.log_lengthscale.detach(),
        "covariance.W": torch.diag((0.7 * v).sqrt()),
        "covariance.log_kappa": (0.3 * v).log(),
        "likelihood.raw_noise": independent.likelihood.raw_noise.detach(),
    }
    joint.load_state_dict(state)
    with torch.no_grad():
        a, b = (m.sample_predictive(p.test.x, 1, torch.Generator()) for m in (independent, joint))
        elbos = [float(m.elbo(p.train, None)["elbo"]) for m in (independent, joint)]
    assert elbos[0] == pytest.approx(elbos[1], abs=1e-8)
    assert torch.allclose(a.mu, b.mu, atol=1e-8)
    assert torch.allclose(a.v, b.v, atol=1e-8)
    # A coupling between tasks that are not diagonal must show.
    with torch.no_grad():
        joint.covariance.W[1, 0] += 0.5
    assert abs(float(joint.elbo(p.train, None)["elbo"].detach()) - elbos[0]) > 1e-2


@pytest.mark.parametrize("ard", ["none", "shared"])
def test_gradients(ard):
    p = problem()
    for module in (
        exact(p, ard=ard, mean="linear", hyperprior=0.8),
        sparse(p, ard=ard, mean="linear", n_inducing=9),
    ):
        scatter_parameters(module, scale=0.2)
        assert gradient_error(module, lambda m=module: m.elbo(p.train, None)["elbo"]) < 1e-5


def test_hyperprior_literally():
    p = problem()
    module = exact(p, rank=2, hyperprior=0.5, lengthscale=2.0, variance=3.0, noise_variance=0.2)
    scatter_parameters(module)
    with torch.no_grad():
        # W ~ N(0, variance/(2 R))
        total = -sum(float(w) ** 2 / (2 * 3.0 / 4) for w in module.covariance.W.flatten())
        for t in range(3):
            total -= 0.5 * (math.log(float(module.likelihood.noise_variance[t]) / 0.2) / 0.5) ** 2
            total -= 0.5 * (math.log(float(module.covariance.log_kappa[t].exp()) / 1.5) / 0.5) ** 2
        for d in range(4):
            total -= (
                0.5
                * (math.log(float(module.covariance.log_lengthscale[0, d].exp()) / 2.0) / 0.5) ** 2
            )
        terms = module.elbo(p.train, None)
    assert float(terms["elbo"] - terms["log_likelihood"]) == pytest.approx(total, abs=1e-9)


def test_initial_coregionalisation_is_the_variance_on_average():
    p = problem()
    B, model = (
        torch.zeros(3, 3, dtype=F64),
        component("model", "cgp", **{**PLAIN, "variance": 2.0}, rank=2),
    )
    for seed in range(400):
        B += model.build(p, streams(seed)).covariance.coregionalisation.detach() / 400
    # Var[(W Wᵀ)_tt] = 2 (v/2)²/R; off the diagonal half of it: standard errors 0.05 and 0.035.
    assert float((B - 2 * torch.eye(3, dtype=F64)).abs().max()) < 0.2


def test_sparse_at_all_labels_is_exact():
    p = problem(n=10)
    full = exact(p, rank=2, mean="linear")
    scatter_parameters(full)
    labels = int(p.train.mask.sum())
    module = sparse(p, rank=2, mean="linear", n_inducing=labels)
    module.load_state_dict(full.state_dict(), strict=False)
    row, task = p.train.mask.nonzero(as_tuple=True)
    module.inducing.data.copy_(p.train.x[row][None])
    module.inducing_task = task[None]
    set_optimal_q(module, p.train)
    with torch.no_grad():
        bound, limit = (float(m.elbo(p.train, None)["elbo"]) for m in (module, full))
        a, b = (m.sample_predictive(p.test.x, 1, torch.Generator()) for m in (module, full))
    assert bound == pytest.approx(limit, abs=1e-5)
    assert torch.allclose(a.mu, b.mu, atol=1e-6)
    assert torch.allclose(a.v, b.v, atol=1e-6)


def test_inducing_pairs_are_dealt_to_the_tasks():
    p = problem(n=30, keep=0.5)
    module = sparse(p, n_inducing=11)
    assert module.inducing.shape == (1, 11, 4)
    assert module.inducing_task[0].bincount().tolist() == [4, 4, 3]
    for z, t in zip(module.inducing[0], module.inducing_task[0], strict=True):
        assert (p.train.x[p.train.mask[:, t]] == z).all(1).any()


@pytest.mark.parametrize("target", ["real", "binary"])
def test_minibatches_sum_to_the_whole(target):
    p = problem(target, n=24)
    module = sparse(p, n_inducing=9)
    scatter_parameters(module, scale=0.1)
    with torch.no_grad():
        whole = float(module.elbo(p.train, None)["log_likelihood"])
        parts = [
            float(
                module.elbo(Batch(p.train.x[r], p.train.y[r], p.train.mask[r], 3.0), None)[
                    "log_likelihood"
                ]
            )
            / 3
            for r in torch.randperm(24, generator=generator(2)).split(8)
        ]
    assert sum(parts) == pytest.approx(whole, rel=1e-10)


@pytest.mark.parametrize(
    ("target", "size"), [("binary", (1, 11, 3, 2)), ("classes", (7, 11, 3, 3))]
)
def test_class_predictions(target, size):
    p = problem(target)
    module = sparse(p)
    noise = module.draw_noise(p.train, 2, generator(0))
    assert torch.isfinite(module.elbo(p.train, noise)["elbo"])
    predictive = module.sample_predictive(p.test.x, 7, generator(0))
    assert predictive.logits.shape == size
    assert torch.allclose(predictive.probs.sum(-1), torch.ones(size[1:3], dtype=F64))


def test_a_task_without_labels_is_predicted_from_the_others():
    p = problem(n=40, keep=1.0)
    mask = p.train.mask.clone()
    mask[:, 2] = False
    p.train = Batch(p.train.x, p.train.y, mask, 1.0)
    module = exact(p, rank=1)
    with torch.no_grad():
        module.covariance.W.fill_(1.0)
        module.covariance.log_kappa.fill_(math.log(1e-3))
        predictive = module.sample_predictive(p.test.x, 1, torch.Generator())
    assert float(predictive.mean[:, 2].std()) > 0.1
