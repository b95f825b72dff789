"""A two-layer Bernoulli model of 3 + 3 binary variables: its bound and gradients by enumeration,
and draws of estimators."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterable
from typing import Any

import torch
from support.runs.configured import F64, component, double, generator, normal
from torch import Tensor

from components.contracts.problems import Rows
from components.models.latent.dvae import BinaryAutoEncoder
from components.problems.unlabelled import Unlabelled
from runner.execution.rng import Streams

UNITS = 3
VALUES = 4


def binary_rows(n: int = 2, values: int = VALUES) -> Unlabelled:
    """Binary rows; the held-out rows are the same."""
    x = torch.bernoulli(
        torch.full((n, values), 0.5, dtype=F64),
        generator=generator(0),
    )
    return Unlabelled("coins", "binary", Rows(x, 1.0), Rows(x, 1.0), None)


def small_dvae(problem: Unlabelled, layers: int = 2, **changes: Any) -> BinaryAutoEncoder:
    """A model of 3 variables in each layer with a guide far from the posterior: every parameter is
    drawn from N(0, 0.8²)."""
    keys = {"units": UNITS, "prior": "learned", "layers": layers} | changes
    module = component("model", "dvae", **keys).build(problem, Streams(0))
    g = generator(0 + 1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(0.8 * normal(g, parameter.shape))
    return module


def every_z(layers: int = 2, units: int = UNITS) -> tuple[Tensor, ...]:
    """All values of z, layer by layer: [2^(layers · units), 1, units] each."""
    values = double(list(itertools.product([0.0, 1.0], repeat=layers * units)))
    return values[:, None].split(units, -1)


def enumerated_elbo(module: BinaryAutoEncoder, batch: Rows) -> Tensor:
    """Σ_b Σ_z q(z|x_b) (log p(x_b, z) − log q(z|x_b)) · scale, differentiable in every
    parameter."""
    z = tuple(layer.expand(-1, batch.n_rows, -1) for layer in every_z(module.n_layers))
    log_q = module.log_q(batch, z)
    return batch.scale * (log_q.exp() * (module.log_joint(batch, z) - log_q)).sum()


def enumerated_gradient(module: BinaryAutoEncoder, batch: Rows) -> Tensor:
    """Gradient of the enumerated bound by every parameter, concatenated [P]."""
    return flat(torch.autograd.grad(enumerated_elbo(module, batch), list(module.parameters())))


def enumerated_multi_sample(module: BinaryAutoEncoder, batch: Rows, n_samples: int) -> Tensor:
    """Σ_b E log S⁻¹ Σ_s p(x_b, z_s)/q(z_s|x_b) · scale over all S values of z."""
    z = tuple(layer.expand(-1, batch.n_rows, -1) for layer in every_z(module.n_layers))
    log_q = module.log_q(batch, z)
    log_w = module.log_joint(batch, z) - log_q
    total = log_q.new_zeros(())
    for b in range(batch.n_rows):
        # [64^S, S]
        q, w = (
            torch.cartesian_prod(*[column] * n_samples) for column in (log_q[:, b], log_w[:, b])
        )
        total = total + (q.sum(1).exp() * (w.logsumexp(1) - math.log(n_samples))).sum()
    return batch.scale * total


def flat(gradients: Any) -> Tensor:
    return torch.cat([g.flatten() for g in gradients])


def repeat_rows(batch: Rows, times: int) -> Rows:
    """The rows repeated, so that one estimate is the mean of ``times`` independent ones."""
    return Rows(batch.x.repeat(times, 1), batch.scale / times)


def z_scores(
    estimator: Any,
    module: BinaryAutoEncoder,
    batch: Rows,
    draws: int,
    groups: int = 100,
    exact: Tensor | None = None,
) -> Tensor:
    """(mean − enumerated gradient) / standard error by parameter [P], of ``draws`` draws in groups
    of repeated rows.

    Estimators treat rows independently, so that a group's estimate is the mean of its draws, and
    normal; the state is passed from group to group. Parameters without noise must agree up to
    rounding, and then count as 0.
    """
    exact = enumerated_gradient(module, batch) if exact is None else exact
    many = [repeat_rows(batch, draws // groups)] * groups
    return estimates_z(estimator, module, many, Streams(7), exact)


def estimates_z(
    estimator: Any, module: Any, batches: Iterable[Any], rng: Streams, exact: Tensor
) -> Tensor:
    """z-scores [P] of an estimate of each batch, the state passed from batch to batch."""
    state = estimator.init(module, rng)
    results = []
    for batch in batches:
        gradients, _, state = estimator.estimate(module, batch, rng, state)
        results.append(flat(gradients))
    return mean_z(torch.stack(results), exact)


def mean_z(drawn: Tensor, exact: Tensor) -> Tensor:
    """(mean − exact) / standard error of draws [n, P]; differences due to rounding count as 0."""
    error = drawn.std(0) / len(drawn) ** 0.5
    off = drawn.mean(0) - exact
    return torch.where(off.abs() < 1e-12, 0.0, off / error)


def fresh_z(estimator: Any, module: BinaryAutoEncoder, batch: Rows, draws: int) -> Tensor:
    """(mean − enumerated gradient) / standard error [P] of single draws, each from an untrained
    state.

    An estimator that learns from the noise that it corrects is most biased at its first step with a
    high rate; a converged state hides the bias.
    """
    rng = Streams(7)
    exact = enumerated_gradient(module, batch)
    state = estimator.init(module, rng)
    results = [
        flat(estimator.estimate(module, batch, rng, copy.deepcopy(state))[0]) for _ in range(draws)
    ]
    return mean_z(torch.stack(results), exact)


def holm_p(z: Tensor, groups: int = 100) -> float:
    """The smallest of Holm's adjusted p-values of two-sided t-tests, one for each parameter."""
    from scipy.stats import t

    return min(1.0, len(z) * 2 * float(t.sf(float(z.abs().max()), groups - 1)))


def check_unbiased(
    estimator: Any, module: BinaryAutoEncoder, batch: Rows, draws: int = 20_000
) -> None:
    """Assert that the mean of many estimates is the exact gradient."""
    assert estimator.unbiased
    z = z_scores(estimator, module, batch, draws)
    assert holm_p(z) > 0.001, f"largest |z| {float(z.abs().max()):.1f}"


def guide_variance(estimator: Any, state: Any = None, n: int = 80, layers: int = 2) -> float:
    """Sum of the variances of ``n`` estimates over the guide's parameters, each from the same
    state."""
    problem = binary_rows(n=6)
    rng = Streams(3)
    module = small_dvae(problem, layers)
    names = [key for key, _ in module.named_parameters()]
    results = []
    for _ in range(n):
        gradients, _, _ = estimator.estimate(module, problem.train, rng, copy.deepcopy(state))
        results.append(
            flat(g for key, g in zip(names, gradients, strict=True) if key.startswith("down"))
        )
    return float(torch.stack(results).var(0).sum())
