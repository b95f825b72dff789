"""Blocks laid side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import torch

from components.contracts.structural import Dynamics, Errors, Facts, Scale, Structure, Terms
from components.trouble import ConfigMismatchError


def side_by_side(blocks: list[Terms], noise: Scale, errors: Errors, facts: Facts) -> Structure:
    """The structure of the sum: G block by block, states and coefficients counted through.

    Raises:
        Misfit: two blocks have a parameter of one name."""
    like = facts.like
    scales = [noise]
    dynamics = list[Dynamics]()
    fades = []
    state_block = []
    column_block = []
    lag: tuple[int, float] | None = None
    d = q = p = 0
    width = sum(len(terms.states) for terms in blocks)
    for b, terms in enumerate(blocks):
        n_states = len(terms.states)
        scales += [
            replace(scale, states=tuple(d + j for j in scale.states)) for scale in terms.scales
        ]
        firsts = [q]
        for moves in terms.transitions:
            placed = like.new_zeros(moves.count, width)
            placed[:, d : d + n_states] = moves.terms
            dynamics.append(replace(moves, row=d + moves.row, terms=placed))
            q += moves.count
            firsts.append(q)
        state_block += [b] * n_states
        if (columns := terms.regressors) is not None:
            n = len(columns.names)
            fades += [
                -1 if columns.fades is None else firsts[columns.fades[0]] + columns.fades[1]
            ] * n
            column_block += [b] * n
            lag = lag if columns.lag is None else (p + columns.lag, facts.centre)
            p += n
        d += n_states
    regressors = [terms.regressors for terms in blocks if terms.regressors is not None]
    column_names = tuple(name for columns in regressors for name in columns.names)
    moving = [name for moves in dynamics for name in moves.names]
    names = [scale.name for scale in scales] + moving + list(column_names)
    names += ["nu"] if errors.is_nu_sampled else []
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ConfigMismatchError(
            f"{facts.where}: two blocks have a parameter {twice[0]}; leave one of them out"
        )
    return Structure(
        G=torch.block_diag(*(terms.G for terms in blocks if terms.states))
        if d
        else like.new_zeros(0, 0),
        mean=torch.cat([terms.mean for terms in blocks]),
        sd=torch.cat([terms.sd for terms in blocks]),
        scales=tuple(scales),
        transitions=tuple(dynamics),
        column_names=column_names,
        inclusion=torch.cat([c.inclusion for c in regressors]) if regressors else like.new_zeros(0),
        precision=torch.block_diag(*(c.precision for c in regressors))
        if regressors
        else like.new_zeros(0, 0),
        fades=torch.tensor(fades, dtype=torch.long, device=like.device),
        lag=lag,
        errors=errors,
        labels=tuple(terms.label for terms in blocks),
        state_block=torch.tensor(state_block, dtype=torch.long, device=like.device),
        column_block=torch.tensor(column_block, dtype=torch.long, device=like.device),
        names=tuple(names),
        units={name: unit for terms in blocks for name, unit in terms.units.items()},
    )
