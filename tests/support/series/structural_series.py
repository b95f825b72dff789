"""Small structural series, and the dense Gaussian that their systems define."""

from __future__ import annotations

import math
from typing import Any

import torch
from support.runs.configured import F64, component, generator, normal, uniform
from torch import Tensor

from components.contracts.structural import Design
from components.maths.time_varying import TimeVaryingSystem
from components.series.forecasting import Forecasting, split
from components.series.sequence import Sequence
from components.series.structural.structural import SumOfBlocks
from runner.execution.rng import Streams

TIMES = 24
AHEAD = 6


def block(name: str, **changes: Any) -> Any:
    return component("block", name, **changes)


def problem(
    times: int = TIMES, ahead: int = AHEAD, missing: tuple[int, ...] = (), seed: int = 3
) -> Forecasting:
    """A series with a random level, two regressors and two channels."""
    g = generator(seed)
    n = times + ahead
    x = normal(g, n, 2)
    u = uniform(g, n, 2)
    y = 10 + normal(g, n).cumsum(0) + x[:, 0]
    y[list(missing)] = math.nan
    whole = Sequence(
        "drawn",
        None,
        y.view(1, -1, 1),
        None,
        ["y"],
        regressors=x,
        regressor_names=["a", "b"],
        inputs=u,
        input_names=["tv", "web"],
    )
    return split(whole, ahead, "end")


def model(*blocks: Any, of: Sequence | None = None, **changes: Any) -> SumOfBlocks:
    parts = [block(part) if isinstance(part, str) else part for part in blocks]
    return component("model", "structural", blocks=parts, **changes).build(
        of or problem(), Streams(0)
    )


def draw_theta(built: SumOfBlocks, sets: int = 2) -> Tensor:
    """Stationary θ [C, P] that differ between chains."""
    g = generator(0)
    structure = built.structure
    count = [
        len(structure.scales),
        sum(moves.count for moves in structure.transitions),
        len(structure.column_names),
    ]
    sigma = 0.3 + uniform(g, sets, count[0])
    phi = 0.2 + 0.25 * uniform(g, sets, count[1])
    beta = normal(g, sets, count[2])
    return torch.cat([sigma, phi, beta], 1)


def joint(
    system: TimeVaryingSystem, c: int
) -> tuple[torch.distributions.MultivariateNormal, Tensor, Tensor]:
    """p(y_1 … y_n) of one set, E[α] [n, d] and Cov(α, α) [n·d, n·d], from the definition: α_t in
    α_1 and the noises."""
    n, d = system.F.shape
    G = system.G[c]
    spreads = [torch.diag(system.sd.square()), *[torch.diag(system.W[c])] * (n - 1)]
    powers = [torch.eye(d, dtype=F64)]
    C = torch.zeros(n, d, n, d, dtype=F64)
    for _ in range(n - 1):
        powers.append(G @ powers[-1])
    effects = torch.stack(powers)  # effect of the noise k times ago
    for k, spread in enumerate(spreads):
        own_effects = effects[: n - k]
        C[k:, :, k:] += torch.einsum("sij,jk,tlk->sitl", own_effects, spread, own_effects)
    mean = effects @ system.mean
    y_mean = (system.F * mean).sum(1) + system.offset[c]
    y_cov = torch.einsum("si,sitj,tj->st", system.F, C, system.F) + torch.diag(system.noise[c])
    return torch.distributions.MultivariateNormal(y_mean, y_cov), mean, C


def smooth_states(system: TimeVaryingSystem, design: Design) -> tuple[Tensor, Tensor]:
    """E[α | y] [n, d] and Cov(α_t | y) [n, d, d] of the first set, by conditioning
    the joint Gaussian."""
    whole, mean, C = joint(system, 0)
    is_observed = design.seen
    n, d = mean.shape
    cross = torch.einsum("sitj,tj->sit", C, system.F)[:, :, is_observed].flatten(0, 1)
    S = whole.covariance_matrix[is_observed][:, is_observed]
    lift = torch.linalg.solve(S, cross.T).T
    posterior = mean.flatten() + lift @ (design.y[is_observed] - whole.loc[is_observed])
    spread = (C.reshape(n * d, n * d) - lift @ cross.T).view(n, d, n, d)
    return posterior.view(n, d), torch.stack([spread[t, :, t] for t in range(n)])
