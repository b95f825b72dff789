"""Convergence diagnostics of Markov chains, by ArviZ, which the field uses and its authors keep."""

from __future__ import annotations

import torch
from torch import Tensor

FEWEST_DRAWS = 4  # per chain: split in halves, each half still needs a variance


def _array_stats():
    # Imported here: it takes a second, and only the end of a run needs it.
    from arviz_stats.base import array_stats

    return array_stats


def bulk_ess(draws: Tensor) -> Tensor:
    """Bulk effective sample size of each coordinate, over rank-normalised split chains; [C, N, P] -> [P].

    Source: Vehtari et al. (2021), section 4.3."""
    values = draws.detach().double().cpu().numpy()
    return torch.as_tensor(_array_stats().ess(values, chain_axis=0, draw_axis=1, method="bulk"))


def split_rhat(draws: Tensor) -> Tensor:
    """Rank-normalised split-R̂ of each coordinate, the larger of bulk and folded; [C, N, P] -> [P].

    Source: Vehtari et al. (2021), section 4.1."""
    values = draws.detach().double().cpu().numpy()
    return torch.as_tensor(_array_stats().rhat(values, chain_axis=0, draw_axis=1, method="rank"))
