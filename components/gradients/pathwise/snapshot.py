"""The gradient of the whole data set at parameters fixed for a pass, gathered batch by batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from components.contracts.capabilities import Pathwise
from components.contracts.problems import RowBatch
from components.gradients.by_parameter import at_parameters, flat, split
from components.gradients.pathwise.bound import whole_gradient
from components.maths.line_search.module_bound import flatten


@dataclass
class PassSnapshot:
    """Parameters φ̃ with their gradient μ̃, and those gathered in the current pass."""

    phi: Tensor  # φ̃ [P]
    mean: Tensor  # μ̃ [P]
    known: bool  # False in the first pass
    next_phi: Tensor  # φ' [P], φ at the start of the pass
    total: Tensor  # Σ_k B_k ĝ_k(φ') over the pass [P]
    seen: int  # number of its rows, Σ_k B_k


def init_snapshot(module: Pathwise[RowBatch]) -> PassSnapshot:
    phi = flatten(module.parameters())
    zero = torch.zeros_like(phi)
    return PassSnapshot(phi, zero, False, phi.clone(), zero.clone(), 0)


def gradient_at(module: Pathwise[RowBatch], batch: RowBatch, noise: Tensor, phi: Tensor) -> Tensor:
    """ĝ_B(φ, ε) [P] at parameters other than the module's own."""
    parameters: list[nn.Parameter] = list(module.parameters())
    with at_parameters(parameters, split(phi, parameters)):
        return flat(whole_gradient(module, batch, noise)[0], parameters)


def gather(
    state: PassSnapshot,
    module: Pathwise[RowBatch],
    batch: RowBatch,
    n_samples: int,
    generator: torch.Generator,
) -> PassSnapshot:
    """Add a batch to the pass; a finished pass becomes the snapshot, and the next starts at φ."""
    noise = module.draw_noise(batch, n_samples, generator)
    total = state.total + batch.n_rows * gradient_at(module, batch, noise, state.next_phi)
    n_rows = state.seen + batch.n_rows
    if n_rows + batch.n_rows <= round(batch.scale * batch.n_rows):
        return PassSnapshot(state.phi, state.mean, state.known, state.next_phi, total, n_rows)
    phi = flatten(module.parameters())
    return PassSnapshot(state.next_phi, total / n_rows, True, phi, torch.zeros_like(total), 0)
