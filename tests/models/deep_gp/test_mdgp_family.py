"""Limits in which members of the deep GP family coincide with each other, with SVGP and with exact
GPs."""

from __future__ import annotations

import gpytorch
import pytest
import torch
from support.runs.configured import generator
from support.small.small_problems import classes, component, real
from test_mdgp_bound import perturbed
from torch.distributions import MultivariateNormal

from components.contracts.predictive import Categorical, GaussianMixture
from components.contracts.problems import Batch
from components.inference.variational.dsvi import natural_step
from components.maths.kernels import kernel
from components.models.deep_gp.build import (
    TaskSpecificProcesses,
    build_shared_and_specific,
    make_linear_map,
)
from components.models.deep_gp.layout import Layout
from runner.execution.rng import Streams

FAMILY = ["smdgp", "mmdgp", "cmdgp", "idgp"]


def bound(module, batch: Batch, S: int = 2, seed: int = 0) -> torch.Tensor:
    return module.elbo(batch, module.draw_noise(batch, S, generator(seed)))["elbo"]


def test_without_specific_processes_mmdgp_is_smdgp():
    problem = real()
    a = component("model", "smdgp", n_inducing=10).build(problem, Streams(0))
    b = component("model", "mmdgp", n_inducing=10, specific_dim=0).build(problem, Streams(0))
    assert torch.equal(bound(a, problem.train), bound(b, problem.train))
    assert a.process_names == b.process_names


def test_without_shared_processes_mmdgp_is_idgp():
    problem = real()
    settings = component("model", "idgp", n_inducing=10, inner_dim=3)
    a = settings.build(problem, Streams(0))
    b = build_shared_and_specific(
        settings, problem, Streams(0), 0, TaskSpecificProcesses(3, None, 1.0)
    )
    assert torch.equal(bound(a, problem.train), bound(b, problem.train))


def test_idgp_is_a_deep_gp_of_each_task_alone():
    """With the other task's labels removed, a task's own terms stay exactly what they were."""
    problem = real()
    module = perturbed("idgp", problem)
    batch = problem.train
    noise = module.draw_noise(batch, 2, generator(0))
    module.elbo(batch, noise)["log_likelihood"].backward()
    G = module.layers()["specific 1"].inducing.grad
    alone = Batch(batch.x, batch.y, batch.mask & torch.tensor([True, False]), batch.scale)
    other = module.sample_layer_noise(
        batch.x, Layout.of(alone.mask, batch.x.dtype), 2, generator(1)
    )
    module.zero_grad()
    module.elbo(alone, other)["log_likelihood"].backward()
    own = module.layers()["specific 1"].inducing.grad
    assert G[2:].abs().max() > 0
    assert own[2:].abs().max() == 0, (
        "processes of the second task have no gradient from labels of the first"
    )


def test_tied_processes_with_equal_kernels_are_untied_ones():
    problem = real()
    kw = {"n_inducing": 8, "inner_dim": 3}
    tied = component("model", "smdgp", tied=True, inner_mean="linear", **kw).build(
        problem, Streams(0)
    )
    untied = component("model", "smdgp", tied=False, inner_mean="linear", **kw).build(
        problem, Streams(0)
    )
    a, b = tied.layers()["shared 1"], untied.layers()["shared 1"]
    assert a.q_mean.shape == (1, 3, 8)
    assert b.q_mean.shape == (3, 1, 8)
    with torch.no_grad():
        b.q_mean.copy_(a.q_mean.transpose(0, 1))
        untied.layers()["top"].inducing.copy_(tied.layers()["top"].inducing)
    assert torch.allclose(bound(tied, problem.train), bound(untied, problem.train), rtol=1e-12)


class GPyTorchSVGP(gpytorch.models.ApproximateGP):
    def __init__(self, layer, t: int):
        q = gpytorch.variational.CholeskyVariationalDistribution(layer.inducing.shape[1])
        super().__init__(
            gpytorch.variational.VariationalStrategy(self, layer.inducing[t].detach().clone(), q)
        )
        self.mean_module = gpytorch.means.ZeroMean()
        base = gpytorch.kernels.MaternKernel(2.5, ard_num_dims=layer.inducing.shape[2])
        self.covar_module = gpytorch.kernels.ScaleKernel(base)
        self.double()
        base.lengthscale = layer.log_lengthscale[t].detach().exp()
        self.covar_module.outputscale = layer.log_variance[t].detach().exp()
        q.variational_mean.data = layer.q_mean[t, 0].detach().clone()
        q.chol_variational_covar.data = layer.q_tril[t, 0].detach().clone()
        self.variational_strategy.variational_params_initialized.fill_(1)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


@pytest.mark.parametrize("name", ["smdgp", "mmdgp", "idgp"])
def test_without_inner_layers_it_is_svgp(name):
    problem = real(n=20)
    module = perturbed(name, problem, depth=0, jitter=1e-9)
    batch = problem.train
    expected = 0.0
    for t in range(2):
        svgp = GPyTorchSVGP(module.layers()["top"], t)
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        likelihood.noise = module.likelihood.noise_variance[t].detach()
        rows = batch.mask[:, t]
        with gpytorch.settings.variational_cholesky_jitter(1e-9, 1e-9, 1e-9):
            q = svgp(batch.x[rows])
            log_likelihood = likelihood.expected_log_prob(batch.y[rows, t], q).sum()
            expected += float((log_likelihood - svgp.variational_strategy.kl_divergence()).detach())
    assert float(bound(module, batch).detach()) == pytest.approx(expected, rel=1e-6)


def evidence(K: torch.Tensor, s2: torch.Tensor, y: torch.Tensor) -> float:
    return float(MultivariateNormal(torch.zeros_like(y), K + torch.diag(s2)).log_prob(y))


def climbed(module, batch: Batch) -> torch.Tensor:
    """The bound after one natural gradient step of size 1 on the top layer."""
    layer = module.layers()["top"]
    (-bound(module, batch, 1)).backward()
    natural_step(layer.q_mean, layer.q_tril, 1.0)
    return bound(module, batch, 1).detach()


def test_inducing_at_the_data_and_one_natural_step_is_the_exact_gp():
    problem = real(n=15, n_tasks=1, missing=0.0)
    module = component("model", "smdgp", depth=0, n_inducing=15, jitter=1e-10).build(
        problem, Streams(0)
    )
    batch, layer = problem.train, module.layers()["top"]
    length, s2 = layer.log_lengthscale[0].detach().exp(), module.likelihood.noise_variance.detach()
    one = torch.ones((), dtype=torch.float64)
    K = kernel(batch.x, batch.x, length, one, "matern52")
    exact = evidence(K, s2.expand(15), batch.y[:, 0])
    assert float(bound(module, batch, 1).detach()) < exact - 1, (
        "before the step it is a bound, and a loose one"
    )
    assert float(climbed(module, batch)) == pytest.approx(exact, rel=1e-6)
    new = problem.test.x
    predictive = module.sample_predictive(new, 1, generator(0))
    k = kernel(new, batch.x, length, one, "matern52")
    inverse = torch.linalg.inv(K + s2 * torch.eye(15, dtype=torch.float64))
    assert torch.allclose(predictive.mean[:, 0], k @ inverse @ batch.y[:, 0], atol=1e-6)
    assert torch.allclose(predictive.variance[:, 0], 1 - ((k @ inverse) * k).sum(1) + s2, atol=1e-6)


def test_coregionalised_top_of_rank_one_is_the_exact_icm():
    """cov(f^t(x), f^s(x')) = a_t a_s k(x, x'), any labels missing: the bound reaches the evidence
    of that GP."""
    problem = real(n=14)
    module = component(
        "model", "cmdgp", depth=0, n_inducing=14, inducing_by_task=False, rank=1, jitter=1e-10
    )
    module = module.build(problem, Streams(0))
    batch, layer = problem.train, module.layers()["top"]
    t, n = batch.mask.T.nonzero(as_tuple=True)
    a = module.top.mixing.detach()[:, 0, 0]
    K = kernel(
        batch.x,
        batch.x,
        layer.log_lengthscale[0].detach().exp(),
        torch.ones((), dtype=torch.float64),
        "matern52",
    )
    B = torch.outer(a, a)
    exact = evidence(
        B[t][:, t] * K[n][:, n],
        module.likelihood.noise_variance.detach()[t],
        batch.y.T[batch.mask.T],
    )
    assert float(climbed(module, batch)) == pytest.approx(exact, rel=1e-6)


def test_coregionalised_top_has_the_prior_covariance_of_an_icm():
    """Under the prior, var f^t = (A Aᵀ)_tt σ²; sampled features λ^t = W^t u have covariance W^t
    W^sᵀ k."""
    problem = real(n=10, n_tasks=3)
    module = component("model", "cmdgp", n_inducing=5, inner_q_mean=0.0, inner_q_scale=1.0).build(
        problem, Streams(0)
    )
    mask = torch.ones(10, 3, dtype=torch.bool)
    noise = module.sample_layer_noise(
        problem.train.x, Layout.of(mask, torch.float64), 4000, generator(0)
    )
    features, _ = module.features(problem.train.x, noise)  # [S, T, n, K]
    W = module.levels[0].mixing.detach()
    covariance = (features[:, 0, 3, :, None] * features[:, 1, 3, None, :]).mean(0).detach()
    assert torch.allclose(covariance, W[0] @ W[1].T, atol=0.12)
    _, variance, _ = module.top(features[:1])
    A = module.top.mixing.detach()[:, 0]
    assert torch.allclose(
        variance[0, :, :, 0], (A @ A.T).diagonal()[:, None].expand(3, 10), atol=1e-6
    )


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    "changes", [{}, {"depth": 2, "tied": True, "pass_inputs": True, "inner_mean": "linear"}]
)
@pytest.mark.parametrize("target", ["real", "binary", "classes"])
def test_every_member_on_every_target(name, dtype, changes, target):
    n_classes = {"real": 1, "binary": 2, "classes": 3}[target]
    n_tasks = 3
    problem = (
        real(n=20, n_tasks=n_tasks, dtype=dtype)
        if target == "real"
        else classes(n=20, n_tasks=n_tasks, n_classes=n_classes, dtype=dtype)
    )
    module = component("model", name, n_inducing=7, inner_dim=2, jitter=1e-5, **changes).build(
        problem, Streams(0)
    )
    terms = module.elbo(problem.train, module.draw_noise(problem.train, 2, generator(0)))
    (-terms["elbo"]).backward()
    for parameter_name, p in module.named_parameters():
        assert p.dtype == dtype
        assert torch.isfinite(p.grad).all(), parameter_name
    predictive = module.sample_predictive(problem.test.x, 3, generator(0))
    if target == "real":
        assert isinstance(predictive, GaussianMixture)
        assert predictive.mu.shape == predictive.v.shape == (3, 20, 3)
        assert (predictive.v > 0).all()
    else:
        assert isinstance(predictive, Categorical)
        assert predictive.logits.shape == (3, 20, 3, n_classes)
    assert predictive.log_prob(problem.test.y).isfinite().all()
    weights = module.ard_weights()
    assert weights.shape == (3, len(module.process_names))
    assert all(
        torch.equal(a, b)
        for a, b in zip(
            module.inducing_inputs().values(),
            module.initial_inducing_inputs().values(),
            strict=True,
        )
    )


def test_process_names_say_what_is_shared():
    problem = real(n_inputs=3)
    module = component("model", "mmdgp", inner_dim=2, specific_dim=1, pass_inputs=True).build(
        problem, Streams(0)
    )
    assert module.process_names == ["g1", "g2", "h1", "x1", "x2", "x3"]


def test_inducing_inputs_are_rows_capped_at_the_data_or_centroids():
    problem = real(n=12)
    module = component("model", "smdgp").build(problem, Streams(0))
    Z = module.inducing_inputs()["shared 1"]
    assert Z.shape == (10, 12, 3)
    assert torch.equal(Z[0].sort(0).values, problem.train.x.sort(0).values)
    centroids = component("model", "smdgp", inducing="kmeans", n_inducing=4).build(
        problem, Streams(0)
    )
    again = component("model", "smdgp", inducing="kmeans", n_inducing=4).build(problem, Streams(0))
    assert centroids.inducing_inputs()["shared 1"].shape == (10, 4, 3)
    assert torch.equal(centroids.inducing_inputs()["shared 1"], again.inducing_inputs()["shared 1"])


def test_inducing_inputs_of_a_task_are_its_own_rows():
    problem = real(n=30, n_tasks=3)
    module = component("model", "mmdgp", n_inducing=12, specific_dim=1).build(problem, Streams(0))
    Z = module.inducing_inputs()["specific 1"]  # [T, M, D]
    for t in range(3):
        own = problem.train.x[problem.train.mask[:, t]]
        found = (Z[t][:, None] == own).all(-1).any(-1)
        assert found.sum() == min(12, len(own))
        assert len(torch.unique(Z[t], dim=0)) == 12
    same = component("model", "mmdgp", n_inducing=12, inducing_by_task=False).build(
        problem, Streams(0)
    )
    Z = same.inducing_inputs()
    assert torch.equal(Z["specific 1"], Z["shared 1"][:1].expand(3, -1, -1))


@pytest.mark.parametrize(("name", "shared", "own", "top"), [
    ("mmdgp", [10, 13], [3, 4], [3, 4]), ("smdgp", [10, 13], None, [3, 4]), ("idgp", None, [3, 4], [3, 4]),
    ("cmdgp", [10, 13], None, [1, 12]),
])  # fmt: skip
def test_inducing_inputs_dealt_to_the_tasks(name, shared, own, top):
    """13 in all: every shared process has them, each of three tasks 4 that start in its own
    rows."""
    problem = real(n=60, n_tasks=3)
    module = component("model", name, n_inducing=13, inducing_by_task="dealt").build(
        problem, Streams(0)
    )
    Z = module.inducing_inputs()
    assert shared is None or list(Z["shared 1"].shape[:2]) == shared
    assert list(module.layers()["top"].inducing.shape[:2]) == top
    if own is not None:
        # of the first process of each task [T, 4, D]
        groups = Z["specific 1"].unflatten(0, (3, -1))[:, 0]
        assert groups.shape[1] == own[1]
        for t in range(3):
            rows = problem.train.x[problem.train.mask[:, t]]
            assert (groups[t][:, None] == rows).all(-1).any(-1).all()
    assert torch.isfinite(bound(module, problem.train))


def test_linear_mean_functions():
    g = generator(0)
    x = torch.randn(50, 4, generator=g, dtype=torch.float64) * torch.tensor([0.1, 3.0, 0.2, 1.0])
    assert torch.equal(make_linear_map(x, 4), torch.eye(4, dtype=torch.float64))
    assert torch.equal(make_linear_map(x, 6)[:, :4], torch.eye(4, dtype=torch.float64))
    axes = make_linear_map(x, 2)
    assert torch.allclose(axes.T @ axes, torch.eye(2, dtype=torch.float64), atol=1e-12)
    assert axes[1, 0].abs() > 0.98, "the first axis is the direction of largest variance"


@pytest.mark.parametrize("name", FAMILY)
def test_gradient_of_a_prediction_in_its_inputs(name):
    """What attacks differentiate."""
    problem = real(n=10)
    module = perturbed(name, problem, pass_inputs=True)
    x = problem.test.x[:3].clone().requires_grad_()

    def value(x):
        return module.sample_predictive(x, 2, generator(0)).mean.sum()

    assert torch.autograd.gradcheck(value, [x], fast_mode=True)


def test_chunks_of_samples_do_not_change_a_prediction(monkeypatch):
    problem = real(n=10)
    module = perturbed("mmdgp", problem)
    whole = module.sample_predictive(problem.test.x, 6, generator(0))
    monkeypatch.setattr("components.models.deep_gp.module.PREDICTION_ELEMENTS", 1)
    parts = module.sample_predictive(problem.test.x, 6, generator(0))
    assert parts.mu.shape == whole.mu.shape
    assert torch.allclose(parts.mean, whole.mean, atol=1.0), "other noise, the same distribution"
