"""Limits in which members of the deep GP family coincide with each other, with SVGP and with exact
GPs."""

from dataclasses import replace
from functools import partial

import gpytorch
import pytest
import torch
from support.runs.configured import F64, build_model, generator
from support.small.small_problems import classes, component, real
from test_mdgp_bound import build_perturbed
from torch.autograd import gradcheck
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from components.inference.variational.dsvi import natural_step
from components.maths.kernels import kernel
from components.models.deep_gp.build import TaskSpecificProcesses, build_shared_and_specific
from components.models.deep_gp.layout import Layout
from runner.execution.rng import Streams

FAMILY = ["smdgp", "mmdgp", "cmdgp", "idgp"]


def compute_elbo(module, batch, S=2):
    return module.elbo(batch, module.draw_noise(batch, S, generator(0)))["elbo"]


def test_without_specific_processes_mmdgp_is_smdgp():
    problem = real()
    a = build_model("smdgp", problem, n_inducing=10)
    b = build_model("mmdgp", problem, n_inducing=10, specific_dim=0)
    assert torch.equal(compute_elbo(a, problem.train), compute_elbo(b, problem.train))


def test_without_shared_processes_mmdgp_is_idgp():
    problem = real()
    settings = component("model", "idgp", n_inducing=10, inner_dim=3)
    a = settings.build(problem, Streams(0))
    b = build_shared_and_specific(
        settings, problem, Streams(0), 0, TaskSpecificProcesses(3, None, 1.0)
    )
    assert torch.equal(compute_elbo(a, problem.train), compute_elbo(b, problem.train))


def test_idgp_equals_separate_deep_gps():
    """With the other task's labels removed, the terms of a task are exactly unchanged."""
    problem = real()
    module = build_perturbed("idgp", problem)
    batch = problem.train
    noise = module.draw_noise(batch, 2, generator(0))
    module.elbo(batch, noise)["log_likelihood"].backward()
    G = module.variational_layers()["specific 1"].inducing.grad
    alone = replace(batch, mask=batch.mask & torch.tensor([True, False]))
    other = module.sample_layer_noise(
        batch.x, Layout.of(alone.mask, batch.x.dtype), 2, generator(1)
    )
    module.zero_grad()
    module.elbo(alone, other)["log_likelihood"].backward()
    own_grad = module.variational_layers()["specific 1"].inducing.grad
    assert G[2:].abs().max() > 0
    assert own_grad[2:].abs().max() == 0, (
        "processes of the second task have no gradient from labels of the first"
    )


def test_tied_processes_with_equal_kernels_equal_untied_ones():
    problem = real()
    keys = {"inner_mean": "linear", "n_inducing": 8, "inner_dim": 3}
    tied, untied = (build_model("smdgp", problem, tied=tied, **keys) for tied in (True, False))
    a = tied.variational_layers()["shared 1"]
    b = untied.variational_layers()["shared 1"]
    assert (a.q_mean.shape, b.q_mean.shape) == ((1, 3, 8), (3, 1, 8))
    b.q_mean.data.copy_(a.q_mean.transpose(0, 1))
    untied.variational_layers()["top"].inducing.data.copy_(
        tied.variational_layers()["top"].inducing
    )
    assert_close(compute_elbo(tied, problem.train), compute_elbo(untied, problem.train))


class GPyTorchSVGP(gpytorch.models.ApproximateGP):
    def __init__(self, layer, t):
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
def test_model_without_inner_layers_is_svgp(name):
    problem = real(n=20)
    module = build_perturbed(name, problem, depth=0, jitter=1e-9)
    batch = problem.train
    expected = 0.0
    for t in range(2):
        svgp = GPyTorchSVGP(module.variational_layers()["top"], t)
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        likelihood.noise = module.likelihood.noise_variance[t].detach()
        rows = batch.mask[:, t]
        with gpytorch.settings.variational_cholesky_jitter(1e-9, 1e-9, 1e-9):
            q = svgp(batch.x[rows])
            log_likelihood = likelihood.expected_log_prob(batch.y[rows, t], q).sum()
            expected += (log_likelihood - svgp.variational_strategy.kl_divergence()).item()
    assert_close(compute_elbo(module, batch).item(), expected)


def compute_kernel(x, z, length):
    return kernel(x, z, length, torch.ones((), dtype=F64), "matern52")


def take_natural_step(module, batch):
    """The bound after one natural gradient step of size 1 on the top layer."""
    layer = module.variational_layers()["top"]
    (-compute_elbo(module, batch, 1)).backward()
    natural_step(layer.q_mean, layer.q_tril, 1.0)
    return compute_elbo(module, batch, 1).detach()


def test_natural_step_with_inducing_data_is_the_exact_gp():
    problem = real(n=15, n_tasks=1, missing=0.0)
    module = build_model("smdgp", problem, depth=0, n_inducing=15, jitter=1e-10)
    batch = problem.train
    layer = module.variational_layers()["top"]
    length = layer.log_lengthscale[0].detach().exp()
    s2 = module.likelihood.noise_variance.detach()
    exact = compute_kernel(batch.x, batch.x, length) + s2 * torch.eye(15, dtype=F64)
    evidence = float(MultivariateNormal(torch.zeros(15, dtype=F64), exact).log_prob(batch.y[:, 0]))
    # before the step the bound is loose
    assert compute_elbo(module, batch, 1).item() < evidence - 1
    assert float(take_natural_step(module, batch)) == pytest.approx(evidence, rel=1e-6)
    new = problem.test.x
    predictive = module.sample_predictive(new, 1, generator(0))
    gain = compute_kernel(new, batch.x, length) @ torch.linalg.inv(exact)
    variance = 1 - (gain * compute_kernel(new, batch.x, length)).sum(1) + s2
    assert torch.allclose(predictive.mean[:, 0], gain @ batch.y[:, 0], atol=1e-6)
    assert torch.allclose(predictive.variance[:, 0], variance, atol=1e-6)


def test_coregionalised_top_of_rank_one_is_the_exact_icm():
    """cov(f^t(x), f^s(x')) = a_t a_s k(x, x'), any labels missing: the bound reaches the evidence
    of that GP."""
    problem = real(n=14)
    module = component(
        "model", "cmdgp", depth=0, n_inducing=14, inducing_by_task=False, rank=1, jitter=1e-10
    )
    module = module.build(problem, Streams(0))
    batch = problem.train
    layer = module.variational_layers()["top"]
    t, n = batch.mask.T.nonzero(as_tuple=True)
    a = module.top.mixing.detach()[:, 0, 0]
    K = compute_kernel(batch.x, batch.x, layer.log_lengthscale[0].detach().exp())
    C = torch.outer(a, a)[t][:, t] * K[n][:, n]
    C += torch.diag(module.likelihood.noise_variance.detach()[t])
    y = batch.y.T[batch.mask.T]
    evidence = float(MultivariateNormal(torch.zeros_like(y), C).log_prob(y))
    assert float(take_natural_step(module, batch)) == pytest.approx(evidence, rel=1e-6)


def test_coregionalised_top_has_the_prior_covariance_of_an_icm():
    """Under the prior, var f^t = (A Aᵀ)_tt σ²; sampled features λ^t = W^t u have covariance W^t
    W^sᵀ k."""
    problem = real(n=10, n_tasks=3)
    module = build_model("cmdgp", problem, n_inducing=5, inner_q_mean=0.0, inner_q_scale=1.0)
    layout = Layout.of(torch.ones(10, 3, dtype=torch.bool), F64)
    noise = module.sample_layer_noise(problem.train.x, layout, 4000, generator(0))
    features, _ = module.features(problem.train.x, noise)  # [S, T, n, K]
    W = module.levels[0].mixing.detach()
    covariance = (features[:, 0, 3, :, None] * features[:, 1, 3, None, :]).mean(0).detach()
    assert torch.allclose(covariance, W[0] @ W[1].T, atol=0.12)
    _, variance, _ = module.top(features[:1])
    A = module.top.mixing.detach()[:, 0]
    assert torch.allclose(
        variance[0, :, :, 0], A.square().sum(1, keepdim=True).expand(3, 10), atol=1e-6
    )


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize(
    ("dtype", "changes"),
    [
        (F64, {}),
        (torch.float32, {"depth": 2, "tied": True, "pass_inputs": True, "inner_mean": "linear"}),
    ],
)
@pytest.mark.parametrize("made", [real, partial(classes, n_classes=2), classes])
def test_every_member_fits_every_target(name, dtype, changes, made):
    problem = made(n=20, n_tasks=3, dtype=dtype)
    module = build_model(name, problem, n_inducing=7, inner_dim=2, jitter=1e-5, **changes)
    terms = module.elbo(problem.train, module.draw_noise(problem.train, 2, generator(0)))
    (-terms["elbo"]).backward()
    for parameter_name, p in module.named_parameters():
        assert p.dtype == dtype
        assert torch.isfinite(p.grad).all(), parameter_name
    predictive = module.sample_predictive(problem.test.x, 3, generator(0))
    assert predictive.log_prob(problem.test.y).isfinite().all()
    assert module.ard_weights().shape == (3, len(module.process_names))
    assert_close(module.inducing_inputs(), module.initial_inducing_inputs(), rtol=0, atol=0)


@pytest.mark.parametrize("name", FAMILY)
def test_prediction_gradient_in_inputs_equals_differences(name):
    """The gradient that attacks use."""
    problem = real(n=10)
    module = build_perturbed(name, problem, pass_inputs=True)
    x = problem.test.x[:3].clone().requires_grad_()

    assert gradcheck(
        lambda x: module.sample_predictive(x, 2, generator(0)).mean.sum(), [x], fast_mode=True
    )


def test_chunks_of_samples_keep_the_prediction(monkeypatch):
    """The noise differs, but the distribution is the same."""
    problem = real(n=10)
    module = build_perturbed("mmdgp", problem)
    whole = module.sample_predictive(problem.test.x, 6, generator(0))
    monkeypatch.setattr("components.models.deep_gp.module.PREDICTION_ELEMENTS", 1)
    parts = module.sample_predictive(problem.test.x, 6, generator(0))
    assert parts.mu.shape == whole.mu.shape
    assert torch.allclose(parts.mean, whole.mean, atol=1.0)
