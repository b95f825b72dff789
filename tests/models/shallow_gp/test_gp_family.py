"""Common properties of igp, cgp and lmc: the literal GP, gradients, hyper-priors and
minibatches."""

import math

import pytest
import torch
from support.runs.configured import F64, build_model, component, generator
from support.small.shallow_gp_problems import (
    OWN,
    PLAIN,
    SLFM,
    elbo_of,
    gradient_error,
    kernel_parts,
    predict,
    problem,
    scatter_parameters,
    set_optimal_q,
    solve_exact_gp,
    streams,
)
from torch.testing import assert_close

from components.maths.kernels import PRODUCT_SHAPES


def build(name, p, **changes):
    return build_model(name, p, **PLAIN | (OWN if name == "lmc" else {}) | changes)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("cgp", {"ard": "none", "rank": 1}),
        ("cgp", {"ard": "shared", "rank": 2}),
        ("lmc", {}),
        ("lmc", {"kernels": 2, "ard": "none"}),
        ("lmc", {"kernels": 3, **SLFM}),
    ],
)
def test_exact_literally_ignores_missing_labels(name, changes):
    """Bonilla et al. (2007), eq. (1), and sums of such kernels."""
    p = problem(n=12)
    module = build(name, p, **changes).requires_grad_(False)
    scatter_parameters(module)
    ours = predict(module, p.test.x)
    assert_close((elbo_of(module, p.train), ours.mean, ours.variance), solve_exact_gp(module, p))


@pytest.mark.parametrize("sparse", [{}, {"posterior": "sparse", "n_inducing": 6}])
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("igp", {"ard": "none", "mean": "zero"}),
        ("igp", {"ard": "own", "mean": "linear"}),
        ("igp", {"ard": "shared", "mean": "constant"}),
        ("cgp", {"ard": "none", "mean": "linear"}),
        ("cgp", {"ard": "shared", "mean": "linear"}),
        ("lmc", {"kernels": 2, "mean": "linear"}),
        ("lmc", {"kernels": 2, "mean": "linear", **SLFM}),
        *(
            (name, {"kernel": shape, "jitter": 1e-4})
            for name in ("igp", "cgp", "lmc")
            for shape in ("linear", "arc_cosine1")
        ),
    ],
)
def test_gradients_equal_finite_differences(name, changes, sparse):
    p = problem()
    module = build(name, p, hyperprior=0.8, **changes, **sparse)
    scatter_parameters(module, scale=0.2)
    assert gradient_error(module, lambda: elbo_of(module, p.train)) < 1e-5


@pytest.mark.parametrize(
    ("name", "changes", "share"),
    [
        ("igp", {"ard": "own", "mean": "linear"}, None),
        ("cgp", {"rank": 2}, 1.5),
        ("lmc", {"kernels": 2, "own_lengthscale": 4.0, "own_variance": 0.3}, 0.75),
        ("lmc", {"kernels": 2, **SLFM}, 1.5),
    ],
)
def test_hyperprior_literally_equals_its_densities(name, changes, share):
    """Log-normal scales around their start; W ~ N(0, v/R), where v is the share of W Wᵀ in the
    variance."""
    p = problem()
    start = {"hyperprior": 0.5, "lengthscale": 2.0, "variance": 3.0, "noise_variance": 0.2}
    module = build(name, p, **start | changes).requires_grad_(False)
    scatter_parameters(module)
    logs = [(module.likelihood.noise_variance.log(), 0.2)]
    normals = []
    for part in kernel_parts(module):
        if hasattr(part, "W"):
            normals.append((part.W, share / part.W.shape[1]))
            logs += [(part.log_lengthscale, 2.0)]
            logs += [] if part.log_kappa is None else [(part.log_kappa, share)]
        else:
            logs.append((part.log_lengthscale, changes.get("own_lengthscale", 2.0)))
            logs.append((part.log_variance, changes.get("own_variance", 3.0)))
    normals += [(value - math.log(begin), 0.25) for value, begin in logs]
    if name == "igp":
        normals += [(module.mean.bias, 0.25), (module.mean.weight, 0.25 / 4)]
    terms = module.elbo(p.train, None)
    expected = -sum(0.5 * z.square().sum() / variance for z, variance in normals)
    assert_close(terms["elbo"] - terms["log_likelihood"], expected)


@pytest.mark.parametrize("shape", ["matern52", *sorted(PRODUCT_SHAPES)])
@pytest.mark.parametrize(
    ("name", "changes"), [("igp", {"ard": "own"}), ("cgp", {"rank": 2}), ("lmc", {"kernels": 2})]
)
def test_sparse_posterior_at_all_labels_is_exact(name, changes, shape):
    p = problem(n=10)
    stable = shape not in PRODUCT_SHAPES
    keys = {"mean": "linear", "kernel": shape, "jitter": 1e-12 if stable else 1e-7, **changes}
    full = build(name, p, **keys)
    scatter_parameters(full)
    row, task = p.train.mask.nonzero(as_tuple=True)
    n_inducing = p.n if name == "igp" else len(row)
    module = build(name, p, posterior="sparse", n_inducing=n_inducing, **keys)
    module.load_state_dict(full.state_dict(), strict=False)
    if name == "igp":
        module.inducing.data.copy_(p.train.x.expand(3, -1, -1))
    else:
        module.inducing.data.copy_(p.train.x[row][None])
        module.inducing_task = task[None]
    set_optimal_q(module, p.train)
    if stable:
        assert_close(elbo_of(module, p.train), elbo_of(full, p.train), rtol=0, atol=1e-5)
    ours = predict(module, p.test.x)
    theirs = predict(full, p.test.x)
    assert_close((ours.mu, ours.v), (theirs.mu, theirs.v), rtol=0, atol=1e-6 if stable else 1e-4)


@pytest.mark.parametrize("name", ["igp", "cgp"])
@pytest.mark.parametrize("target", ["real", "binary"])
def test_minibatch_bounds_sum_to_the_whole(name, target):
    p = problem(target, n=24)
    module = build(name, p, posterior="sparse", n_inducing=9)
    scatter_parameters(module, scale=0.1)
    whole = module.elbo(p.train, None)["log_likelihood"]
    batches = [
        p.train.part(rows, 3.0) for rows in torch.randperm(24, generator=generator(2)).split(8)
    ]
    parts = [module.elbo(batch, None)["log_likelihood"] / 3 for batch in batches]
    assert_close(sum(parts), whole)


# Var[(W Wᵀ)_tt] = 2 (v/2)²/R and 4 · 2 (v/4)²: standard errors of 0.05 and 0.12
@pytest.mark.parametrize(
    ("name", "changes", "seeds", "error"),
    [("cgp", {"rank": 2}, 400, 0.2), ("lmc", {"kernels": 4, **OWN, **SLFM}, 150, 0.4)],
)
def test_coregionalisation_starts_at_the_variance_on_average(name, changes, seeds, error):
    p = problem()
    total = torch.zeros(3, 3, dtype=F64)
    model = component("model", name, **PLAIN | {"variance": 2.0} | changes)
    for seed in range(seeds):
        for part in kernel_parts(model.build(p, streams(seed))):
            total += part.coregionalisation.detach() / seeds
    assert (total - 2 * torch.eye(3, dtype=F64)).abs().max() < error
