"""Gradient of a bound at given noise, for all rows jointly or row by row, shared by pathwise
estimators.

"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from components.contracts.capabilities import Pathwise
from components.contracts.costs.counts import count, pause, resume
from components.contracts.problems import Batch, RowBatch, Rows
from components.errors import ConfigMismatchError
from components.gradients.by_parameter import Called, Gradients, Terms, split


def bound_terms(elbo: Tensor, kl: Tensor) -> Terms:
    """elbo and, if rows share a term, kl, for the whole data set in nats."""
    return {"elbo": elbo.detach()} | ({"kl": kl.detach()} if kl.requires_grad else {})


def whole_gradient(
    module: Pathwise[RowBatch], batch: RowBatch, noise: Tensor
) -> tuple[Gradients, Terms]:
    """∇ [N/B Σ_b S⁻¹ Σ_s ℓ_b(ε_s) − KL] at noise ε [S, B, D], in one backward pass."""
    kl = module.kl()
    elbo = batch.scale * module.elbo_rows(batch, noise).mean(0).sum() - kl
    return list(
        torch.autograd.grad(elbo, list(module.parameters()), allow_unused=True)
    ), bound_terms(elbo, kl)


def row_gradients(
    module: Pathwise[RowBatch], batch: RowBatch, noise: Tensor
) -> tuple[Tensor, Gradients, Terms]:
    """ĝ_b = N/B ∇ S⁻¹ Σ_s ℓ_b(ε_sb) for each row [B, P] in one vectorised pass; their sum minus ∇KL
    by parameter; and the terms of the bound.

    Raises:
        ConfigMismatchError: the module's rows cannot be differentiated separately."""
    if not isinstance(module, nn.Module) or not isinstance(batch, Batch | Rows):
        raise ConfigMismatchError(
            "objective=partial_gradients requires rows that can be differentiated separately, "
            "which this model lacks; use "
            "objective=squared_difference"
        )
    n = batch.scale * batch.n_rows
    bound = Called(module, module.elbo_rows)
    # A view of each parameter for every row, so that one ordinary reverse pass computes the
    # gradients of all rows; ``grad`` inside ``vmap`` would record it for a second derivative, which
    # takes half as long again.
    row_parameters = {
        name: p.detach().expand(batch.n_rows, *p.shape).requires_grad_()
        for name, p in bound.named_parameters()
    }

    def of_row(parameters: dict[str, Tensor], row: Tensor, noise: Tensor) -> Tensor:
        value: Tensor = functional_call(
            bound, parameters, (batch.part(row[None], n), noise[:, None])
        )
        return value.mean()  # S⁻¹ Σ_s ℓ_b(ε_s)

    places = torch.arange(batch.n_rows, device=noise.device)
    costs = pause()  # inside, for one row
    values = vmap(of_row, in_dims=(0, 0, 1))(row_parameters, places, noise)  # [B]
    resume(costs)
    S = len(noise)
    count(densities=S, gradients=S, forwards=S * batch.n_rows)
    row_grads = torch.autograd.grad(
        values.sum(), list(row_parameters.values()), allow_unused=True, materialize_grads=True
    )
    rows = batch.scale * torch.cat([g.reshape(batch.n_rows, -1) for g in row_grads], 1)
    kl = module.kl()
    parameters = list(module.parameters())
    shared: tuple[Tensor | None, ...] = (None,) * len(parameters)
    if kl.requires_grad:
        shared = torch.autograd.grad(kl, parameters, allow_unused=True)
    sums = split(rows.sum(0), parameters)
    gradients: Gradients = [g if k is None else g - k for g, k in zip(sums, shared, strict=True)]
    return rows, gradients, bound_terms(batch.scale * values.detach().sum() - kl, kl)
