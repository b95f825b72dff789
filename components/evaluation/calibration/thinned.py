"""Thinning of a posterior's draws before they are ranked."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from components.contracts.posteriors import HoldsDraws
from components.errors import ConfigMismatchError


class ThinnedDraws(NamedTuple):
    """Selection from the stored draws of chains, as positions in [C, N]."""

    chains: Tensor  # [L]
    draws: Tensor  # [L]

    def of(self, values: Tensor) -> Tensor:
        """Values [C, N, …] at the positions, [L, …]."""
        return values[self.chains.to(values.device), self.draws.to(values.device)]


def thin(draws: HoldsDraws, n_draws: int, generator: torch.Generator) -> ThinnedDraws:
    """Select the given number of draws, evenly spaced in each chain, or resampled if weighted.

    Raises:
        ConfigMismatchError: fewer draws are stored.
    """
    chains = draws.n_chains
    kept = draws.n_draws
    if draws.log_weights is not None:
        rows = torch.multinomial(draws.weights.cpu(), n_draws, True, generator=generator)
        return ThinnedDraws(rows // kept, rows % kept)
    if chains * kept < n_draws:
        raise ConfigMismatchError(
            f"inference: stores {chains * kept} draws, but --draws {n_draws} are needed for ranks; "
            f"raise steps (or draws or chains of "
            "the method), or lower --draws"
        )
    each = math.ceil(n_draws / chains)
    places = kept - 1 - (torch.arange(each) * kept // each)  # the last draw is always included
    pairs = torch.cartesian_prod(torch.arange(chains), places).view(-1, 2)
    if len(pairs) > n_draws:
        pairs = pairs[torch.randperm(len(pairs), generator=generator)[:n_draws].sort().values]
    return ThinnedDraws(pairs[:, 0], pairs[:, 1])
