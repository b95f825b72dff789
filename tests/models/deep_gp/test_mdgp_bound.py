"""The bound of the multi-task deep GPs compared with eqs. (3.12) to (3.14) evaluated literally, and
as an estimator."""

import itertools
from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, build_model, generator
from support.small.shallow_gp_problems import gradient_error
from support.small.small_problems import real
from torch.autograd import grad
from torch.distributions import MultivariateNormal, Normal, kl_divergence
from torch.testing import assert_close

from components.contracts.problems import Batch
from components.maths.kernels import kernel
from components.models.deep_gp.layout import Layout
from components.models.deep_gp.module import DGPNoise

SMALL = {"inner_dim": 2, "n_inducing": 6}


def build_perturbed(name, problem, **changes):
    """A built model with random changes of every parameter, so that nothing is zero or equal by
    initialisation."""
    module = build_model(name, problem, **{**SMALL, **changes})
    g = generator(5)
    with torch.no_grad():
        for parameter_name, p in module.named_parameters():
            noise = 0.3 * torch.randn(p.shape, generator=g, dtype=p.dtype)
            p.add_(noise.tril() if parameter_name.endswith("q_tril") else noise)
    return module


def dense_process(layer, group, q, x):
    """Mean and variance [n] at inputs x [n, D] of one process, by the unwhitened equations with
    explicit inverses, and KL[q(u) ‖ p(u)]: a term of the last three sums of eq. (3.12)."""
    Z = layer.inducing[group]
    length = layer.log_lengthscale[group].exp()
    s2 = layer.log_variance[group].exp()
    K = kernel(Z, Z, length, s2, layer.shape) + s2 * layer.jitter * torch.eye(len(Z), dtype=F64)
    L = torch.linalg.cholesky(K)
    m = L @ layer.q_mean[group, q]
    C = L @ layer.q_tril[group, q]
    S = C @ C.T
    alpha = torch.linalg.inv(K) @ kernel(Z, x, length, s2, layer.shape)  # eq. (3.9)
    mean = alpha.T @ m  # eq. (3.7) under q(u), zero prior mean
    variance = s2 + (alpha * ((S - K) @ alpha)).sum(0)  # eqs. (3.8) and (2.65)
    if layer.mean_weight is not None:
        mean = mean + x @ layer.mean_weight[group, :, q]
    posterior = MultivariateNormal(m, 0.5 * (S + S.T))
    return mean, variance, kl_divergence(posterior, MultivariateNormal(torch.zeros_like(m), K))


@torch.no_grad()
def literal_bound(module, batch, noise):
    """Eq. (3.14), one task, one sample and one process at a time."""
    layers = module.variational_layers()
    ((g_noise, h_noise),) = noise.levels
    S = len(g_noise)
    J = 0 if h_noise is None else h_noise.shape[-1]
    total = 0.0
    for t, s in itertools.product(range(module.n_tasks), range(S)):
        rows = batch.mask[:, t]
        s2 = module.likelihood.noise_variance[t]
        x = batch.x[rows]

        def draw(layer, group, noise, x=x):
            mean, variance, _ = dense_process(layers[layer], group, 0, x)
            return mean + variance.sqrt() * noise[: len(x)]

        features = [draw("shared 1", i, g[rows]) for i, g in enumerate(g_noise[s].T)]
        features += [draw("specific 1", t * J + j, h_noise[s, t, :, j]) for j in range(J)]
        features += list(x.T) if module.pass_inputs else []
        lam = torch.stack(features, 1)
        mean, variance, _ = dense_process(layers["top"], t, 0, lam)  # q(f|λ), eq. (3.13)
        log_density = Normal(mean, s2.sqrt()).log_prob(batch.y[rows, t])
        total += (log_density - 0.5 * variance / s2).sum() / S
    divergences = [
        dense_process(layer, *index, layer.inducing[0])[2]
        for layer in layers.values()
        for index in itertools.product(range(len(layer.q_mean)), range(layer.n_outputs))
    ]
    return batch.scale * total - sum(divergences)


@pytest.mark.parametrize("name", ["smdgp", "mmdgp"])
@pytest.mark.parametrize(
    "changes", [{}, {"inner_mean": "linear", "pass_inputs": True, "inner_ard": True}]
)
def test_bound_equals_equation_3_14(name, changes):
    problem = real(n=9, n_inputs=3)
    extra = {"specific_dim": 2} if name == "mmdgp" else {}
    module = build_perturbed(name, problem, **changes, **extra)
    batch = replace(problem.train, scale=3.0)
    noise = module.draw_noise(batch, 2, generator(0))
    terms = module.elbo(batch, noise)
    literal = literal_bound(module, batch, noise)
    difference = terms["log_likelihood"] - terms["kl"]
    assert_close((terms["elbo"], difference), (literal, literal))
    # The check can fail: without one process's divergence the two differ by far more than rounding.
    assert abs(float(literal) - terms["log_likelihood"].item()) > 1e-3


@pytest.mark.parametrize("name", ["smdgp", "mmdgp", "cmdgp", "idgp"])
def test_missing_labels_do_not_count(name):
    problem = real(n=12)
    module = build_perturbed(name, problem)
    batch = problem.train
    noise = module.draw_noise(batch, 3, generator(0))
    first = module.elbo(batch, noise)["elbo"]
    other = replace(batch, y=torch.where(batch.mask, batch.y, 1e6))
    gradients = grad(first, list(module.parameters()), retain_graph=True, allow_unused=True)
    assert all(torch.isfinite(g).all() for g in gradients if g is not None), (
        "NaN labels spoil no gradient"
    )
    assert torch.equal(module.elbo(other, noise)["elbo"], first)
    wrong = replace(batch, y=torch.where(batch.mask, batch.y + 1.0, batch.y))
    assert not torch.equal(module.elbo(wrong, noise)["elbo"], first)


def test_rows_without_any_label_do_not_count():
    problem = real(n=12)
    module = build_perturbed("mmdgp", problem)
    batch = problem.train
    noise = module.draw_noise(batch, 2, generator(0))
    longer = Batch(
        torch.cat([batch.x, torch.full((2, 3), 7.0, dtype=batch.x.dtype)]),
        torch.cat([batch.y, torch.zeros(2, 2, dtype=batch.y.dtype)]),
        torch.cat([batch.mask, torch.zeros(2, 2, dtype=torch.bool)]),
        batch.scale,
    )
    shared = torch.cat([noise.levels[0][0], torch.ones(2, 2, 2, dtype=batch.x.dtype)], 1)
    same = DGPNoise(Layout.of(longer.mask, batch.x.dtype), [[shared, noise.levels[0][1]]], None)
    assert torch.allclose(
        module.elbo(longer, same)["elbo"], module.elbo(batch, noise)["elbo"], rtol=1e-12
    )


def parts_of(batch, size):
    n = batch.x.shape[0]
    rows = torch.randperm(n, generator=generator(0)).split(size)
    return [(r, batch.part(r, n / len(r))) for r in rows]


def noise_of_rows(noise, part, rows):
    """The noise of some rows of the full batch, arranged for only these rows."""
    layout = Layout.of(part.mask, part.x.dtype)
    shared, specific = noise.levels[0]
    own_noise = None
    if specific is not None:
        # [S, b, T, J]
        by_label = specific.new_zeros(specific.shape[0], *part.mask.shape, specific.shape[-1])
        whole = noise.layout
        for t in range(whole.n_tasks):
            for b, row in enumerate(rows.tolist()):
                places = (
                    [] if whole.rows is None else (whole.rows[t] == row) & (whole.weight[t] > 0)
                )
                if part.mask[b, t]:
                    by_label[:, b, t] = specific[:, t, places][:, 0]
        own_noise = torch.stack([by_label[:, layout.rows[t], t] for t in range(whole.n_tasks)], 1)
    return DGPNoise(layout, [[None if shared is None else shared[:, rows], own_noise]], None)


@pytest.mark.parametrize("name", ["smdgp", "mmdgp", "idgp"])
def test_minibatch_bounds_average_to_the_whole(name):
    """Over a partition into equal batches with the same noise for each row, the mean is exact, so
    the bound is unbiased."""
    problem = real(n=12)
    module = build_perturbed(name, problem)
    noise = module.draw_noise(problem.train, 2, generator(1))
    whole = module.elbo(problem.train, noise)["elbo"]
    bounds = []
    unscaled = []
    for rows, part in parts_of(problem.train, 4):
        own_noise = noise_of_rows(noise, part, rows)
        bounds.append(module.elbo(part, own_noise)["elbo"])
        unscaled.append(module.elbo(replace(part, scale=1.0), own_noise)["elbo"])
    assert torch.allclose(torch.stack(bounds).mean(), whole, rtol=1e-10)
    assert not torch.allclose(torch.stack(unscaled).mean(), whole, rtol=1e-3)


@pytest.mark.parametrize("name", ["smdgp", "mmdgp", "cmdgp", "idgp"])
@pytest.mark.parametrize("depth", [1, 2])
def test_gradients_equal_finite_differences(name, depth):
    problem = real(n=8)
    linear = {"inner_mean": "linear", "top_mean": "linear"}
    module = build_perturbed(name, problem, depth=depth, pass_inputs=True, **linear)
    noise = module.draw_noise(problem.train, 2, generator(0))
    assert gradient_error(module, lambda: module.elbo(problem.train, noise)["elbo"]) < 2e-4
