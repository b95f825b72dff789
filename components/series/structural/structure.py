"""Sum of blocks as one structure: states, scales, dynamics, columns and names of parameters."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn.functional import pad

from components.contracts.structural import (
    Dynamics,
    Errors,
    Facts,
    Regressors,
    Scale,
    Structure,
    Terms,
)
from components.errors import ConfigMismatchError


def place_scales(blocks: list[Terms], firsts: list[int], noise: Scale) -> tuple[Scale, ...]:
    """The scale of the noise, then the scales of the blocks with states numbered consecutively."""
    return noise, *(
        replace(scale, states=tuple(first + j for j in scale.states))
        for first, terms in zip(firsts, blocks, strict=True)
        for scale in terms.scales
    )


def place_dynamics(blocks: list[Terms], firsts: list[int], width: int) -> tuple[Dynamics, ...]:
    """The dynamics of the blocks, with rows and states numbered consecutively."""
    return tuple(
        replace(
            moves,
            row=first + moves.row,
            terms=pad(moves.terms, (first, width - first - len(terms.states))),
        )
        for first, terms in zip(firsts, blocks, strict=True)
        for moves in terms.transitions
    )


def place_columns(
    blocks: list[Terms], facts: Facts
) -> tuple[list[int], list[int], tuple[int, float] | None]:
    """Columns of the blocks, numbered consecutively.

    Returns:
        Index of the coefficient with which each column fades (−1 if there is none), block of each
        column, and the lagged column with the series' centre.
    """
    fades: list[int] = []
    column_block: list[int] = []
    lag: tuple[int, float] | None = None
    q = 0
    for b, terms in enumerate(blocks):
        firsts = list(accumulate((moves.count for moves in terms.transitions), initial=q))
        q = firsts[-1]
        columns = terms.regressors
        if columns is None:
            continue
        n = len(columns.names)
        if columns.lag is not None:
            lag = (len(fades) + columns.lag, facts.centre)
        fades += [-1 if columns.fades is None else firsts[columns.fades[0]] + columns.fades[1]] * n
        column_block += [b] * n
    return fades, column_block, lag


def block_diagonal(parts: list[Tensor], like: Tensor) -> Tensor:
    return torch.block_diag(*parts) if parts else like.new_zeros(0, 0)


def _refuse_repeated(names: list[str], where: str) -> None:
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ConfigMismatchError(
            f"{where}: two blocks have a parameter {twice[0]}; remove one of them"
        )


def _list_columns(regressors: list[Regressors]) -> tuple[str, ...]:
    return tuple(name for columns in regressors for name in columns.names)


def _join_limits(regressors: list[Regressors], like: Tensor) -> Tensor:
    """Limits of all columns, 0 for unlimited ones."""
    each = (columns.limits or [0.0] * len(columns.names) for columns in regressors)
    return like.new_tensor([k for limits in each for k in limits])


def side_by_side(blocks: list[Terms], noise: Scale, errors: Errors, facts: Facts) -> Structure:
    """The structure of the sum: G block by block, with states and coefficients numbered
    consecutively.

    Raises:
        ConfigMismatchError: two blocks have a parameter of the same name."""
    like = facts.like
    *firsts, width = accumulate((len(terms.states) for terms in blocks), initial=0)
    scales = place_scales(blocks, firsts, noise)
    dynamics = place_dynamics(blocks, firsts, width)
    fades, column_block, lag = place_columns(blocks, facts)
    state_block = [b for b, terms in enumerate(blocks) for _ in terms.states]
    regressors = [terms.regressors for terms in blocks if terms.regressors is not None]
    column_names = _list_columns(regressors)
    names = [scale.name for scale in scales]
    names += [name for moves in dynamics for name in moves.names]
    names += [*column_names, *["nu"] * errors.is_nu_sampled]
    _refuse_repeated(names, facts.where)
    inclusion = [columns.inclusion for columns in regressors] or [like.new_zeros(0)]
    return Structure(
        G=block_diagonal([terms.G for terms in blocks if terms.states], like),
        mean=torch.cat([terms.mean for terms in blocks]),
        sd=torch.cat([terms.sd for terms in blocks]),
        scales=scales,
        transitions=dynamics,
        column_names=column_names,
        inclusion=torch.cat(inclusion),
        precision=block_diagonal([columns.precision for columns in regressors], like),
        fades=like.new_tensor(fades, dtype=torch.long),
        limits=_join_limits(regressors, like),
        lag=lag,
        errors=errors,
        labels=tuple(terms.label for terms in blocks),
        state_block=like.new_tensor(state_block, dtype=torch.long),
        column_block=like.new_tensor(column_block, dtype=torch.long),
        names=tuple(names),
        units={name: unit for terms in blocks for name, unit in terms.units.items()},
    )
