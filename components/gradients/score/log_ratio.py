"""Log densities at detached draws, row by row, and the backward pass of a surrogate, shared by
score-function gradients.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeGuard

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils._pytree import tree_map

from components.contracts.capabilities import DrawsWithDensity, LogRatio
from components.contracts.capabilities.latent import PullBack
from components.contracts.problems import RowBatch
from components.errors import ConfigMismatchError
from components.gradients.by_parameter import Called, Gradients

# f multiplies the score of its own row or, summed over the rows, of every row
Product = Literal["per_row", "batch_sum"]


@dataclass(frozen=True)
class LatentSamples:
    """The two log densities at S draws for each row, as functions of the parameters; the draws
    themselves are detached."""

    log_q: Tensor  # log q(z_sb|x_b) [S, B]
    log_joint: Tensor  # log p(x_b, z_sb) [S, B]
    z: Any  # the draws, a tensor or a tuple of them

    @property
    def f(self) -> Tensor:
        """f_sb = log q(z_sb|x_b) − log p(x_b, z_sb), detached [S, B] (Boustati 2021, eq. 5.4)."""
        return (self.log_q - self.log_joint).detach()


def sample_guide(
    module: LogRatio[RowBatch], batch: RowBatch, n_samples: int, generator: torch.Generator
) -> LatentSamples:
    """S draws for each row from the module's own guide, and the densities at them."""
    if isinstance(module, DrawsWithDensity):
        z, log_q = module.sample_with_log_q(batch, n_samples, generator)
        return LatentSamples(log_q, module.log_joint(batch, z), z)
    z = module.sample(batch, n_samples, generator)
    return LatentSamples(module.log_q(batch, z), module.log_joint(batch, z), z)


def scores(
    module: LogRatio[RowBatch],
    batch: RowBatch,
    z: Any,
    parameters: Sequence[nn.Parameter],
    weights: Sequence[Tensor],
) -> list[list[Tensor]]:
    """Σ_b w_sb ∇log q(z_sb|x_b) of each of S draws with respect to some parameters, [S, …] each,
    for each of several w [S, B].

    One vectorised pass with cost linear in S."""
    if not isinstance(module, nn.Module):
        raise ConfigMismatchError(
            "scores of single draws require a torch module, which this model is not; use "
            "gradient=reinforce"
        )
    log_q = Called(module, module.log_q)
    parameter_ids = {id(p) for p in parameters}
    start = {name: p.detach() for name, p in log_q.named_parameters() if id(p) in parameter_ids}

    def of_draw(z: Any, *given: Tensor) -> list[list[Tensor]]:
        draw = tree_map(lambda layer: layer[None], z)
        _, pulled, *_ = torch.func.vjp(
            lambda at: functional_call(log_q, at, (batch, draw))[0], start
        )
        return [[by_name[name] for name in start] for by_name in (pulled(w)[0] for w in given)]

    gradients: list[list[Tensor]] = torch.func.vmap(of_draw)(z, *weights)
    return gradients


def ascent(module: LogRatio[RowBatch], batch: RowBatch, surrogate: Tensor) -> Gradients:
    """∇ N/B Σ_b surrogate_b, in the order of the parameters; surrogate [B], or its sum."""
    total = batch.scale * surrogate.sum()
    return list(torch.autograd.grad(total, list(module.parameters()), allow_unused=True))


@cache
def _has_derivative_type(kind: type) -> bool:
    return issubclass(kind, DrawsWithDensity)


def has_exact_derivative(module: LogRatio[RowBatch]) -> TypeGuard[DrawsWithDensity[RowBatch]]:
    """Cached by class because it is used at every step, and isinstance with a large protocol takes
    as long as an Adam step."""
    return _has_derivative_type(type(module))


def differentiable(
    module: LogRatio[RowBatch], batch: RowBatch, n_samples: int, generator: torch.Generator
) -> tuple[Tensor, PullBack]:
    """f_sb at S draws for each row [S, B], and the derivative of the two log densities: the
    module's own if available, otherwise from one backward pass, which can be run only once."""
    if has_exact_derivative(module):
        log_q, log_joint, derivative = module.draw_with_derivative(batch, n_samples, generator)
        return log_q - log_joint, derivative
    draws = sample_guide(module, batch, n_samples, generator)

    def pull_back(by_q: Tensor, by_joint: Tensor) -> Gradients:
        pairs = [(draws.log_joint, by_joint), (draws.log_q, by_q)]
        outputs, cotangents = zip(
            *[(value, by) for value, by in pairs if value.requires_grad], strict=True
        )
        return list(
            torch.autograd.grad(outputs, list(module.parameters()), cotangents, allow_unused=True)
        )

    return draws.f, pull_back


def weighted_gradient(
    batch: RowBatch, pull_back: PullBack, f: Tensor, weights: Tensor
) -> Gradients:
    """N/B Σ_b S⁻¹ Σ_s (∇ log p(x_b, z_sb) + w_sb ∇ log q(z_sb|x_b)), in the order of the
    parameters; w [S, B], or [S, 1]."""
    each = torch.full_like(f, batch.scale / len(f))
    return pull_back(each * weights, each)


def elbo(batch: RowBatch, f: Tensor) -> dict[str, Tensor]:
    """−N/B Σ_b f̄_b, the bound of the whole data set."""
    return {"elbo": -batch.scale * f.mean(0).sum()}


def factors(f: Tensor, product: Product) -> Tensor:
    """Factors of the rows' scores: f [S, B], or [S, 1] if f is summed over the rows first."""
    return f if product == "per_row" else f.sum(1, keepdim=True)


def require_two_draws(n_samples: int, name: str, reason: str) -> None:
    """Raise ValueError if a gradient compares several draws and there is only one."""
    if n_samples < 2:
        raise ValueError(f"n_samples: {name} {reason}; set inference.n_samples to 2 or more")
