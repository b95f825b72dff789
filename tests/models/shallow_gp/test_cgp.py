"""cgp: against Kronecker algebra, GPyTorch's index kernel, and igp where they coincide."""

import math
from dataclasses import replace

import gpytorch
import torch
from support.runs.configured import build_model
from support.small.shallow_gp_problems import (
    F64,
    bound,
    predict,
    problem,
    scatter_parameters,
    streams,
)
from support.small.small_problems import component
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

PLAIN = {"hyperprior": None, "lengthscale": 1.5, "variance": 1.0, "jitter": 1e-12}


def exact(p, **changes):
    return build_model("cgp", p, **{**PLAIN, **changes})


def sparse(p, **changes):
    return exact(p, posterior="sparse", **changes)


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
        expected = MultivariateNormal(torch.zeros(36, dtype=F64), C).log_prob(y)
        assert_close(bound(module, p.train), expected)


def test_exact_is_gpytorchs_index_kernel():
    p = problem(n=20)
    module = exact(p, ard="none", rank=2)
    scatter_parameters(module)
    data = gpytorch.kernels.MaternKernel(nu=2.5).double()
    index = gpytorch.kernels.IndexKernel(num_tasks=3, rank=2).double()
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
        assert_close(bound(module, p.train), expected, rtol=0, atol=1e-5)


def test_diagonal_coregionalisation_is_igp():
    p = problem()
    independent = build_model("igp", p, **PLAIN, ard="shared")
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
        a, b = (predict(m, p.test.x) for m in (independent, joint))
        limit = bound(independent, p.train)
        assert_close(bound(joint, p.train), limit)
    assert_close((a.mu, a.v), (b.mu, b.v))
    # A coupling between tasks that are not diagonal must show.
    with torch.no_grad():
        joint.covariance.W[1, 0] += 0.5
    assert abs(float(bound(joint, p.train)) - float(limit)) > 1e-2


def test_initial_coregionalisation_is_the_variance_on_average():
    p = problem()
    B = torch.zeros(3, 3, dtype=F64)
    model = component("model", "cgp", **{**PLAIN, "variance": 2.0}, rank=2)
    for seed in range(400):
        B += model.build(p, streams(seed)).covariance.coregionalisation.detach() / 400
    # Var[(W Wᵀ)_tt] = 2 (v/2)²/R; off the diagonal half of it: standard errors 0.05 and 0.035.
    assert (B - 2 * torch.eye(3, dtype=F64)).abs().max() < 0.2


def test_inducing_pairs_are_dealt_to_the_tasks():
    p = problem(n=30, keep=0.5)
    module = sparse(p, n_inducing=11)
    assert module.inducing.shape == (1, 11, 4)
    assert module.inducing_task[0].bincount().tolist() == [4, 4, 3]
    for z, t in zip(module.inducing[0], module.inducing_task[0], strict=True):
        assert (p.train.x[p.train.mask[:, t]] == z).all(1).any()


def test_a_task_without_labels_is_predicted_from_the_others():
    p = problem(n=40, keep=1.0)
    mask = p.train.mask.clone()
    mask[:, 2] = False
    p.train = replace(p.train, mask=mask)
    module = exact(p, rank=1)
    with torch.no_grad():
        module.covariance.W.fill_(1.0)
        module.covariance.log_kappa.fill_(math.log(1e-3))
        predictive = predict(module, p.test.x)
    assert predictive.mean[:, 2].std() > 0.1
