"""The rules of a game in tables as arrays: every cell is played once on the tensors."""

from __future__ import annotations

from typing import NamedTuple

import torch

from components.games.environments.game import Game
from components.games.environments.table_environment import TableEnvironment
from components.maths.compiled.loops import Array


class Rules(NamedTuple):
    """Rules of each cell, (s·A + a)·B + b."""

    pays: Array  # [3, S·A·B] the agent's reward, the opponent's, welfare
    after: Array  # [S·A·B] long: s'
    ends: Array  # [S] bool: states that end an episode
    shown: Array  # [S·A·K]
    seen: Array  # [S·A] bool


def rules(environment: TableEnvironment) -> Rules:
    """Results of ``step``, ``shown`` and ``Game.welfare`` for every cell, bitwise identical."""
    S, A, B = environment.reward_a.shape
    cells = torch.arange(S * A * B, device=environment.device)
    s = cells // (A * B)
    a = cells // B % A
    b = cells % B
    outcome = environment.step(s, a, b.unsqueeze(1), torch.Generator())
    rows = torch.arange(S * A, device=environment.device)
    weights, is_observed = environment.observe(rows // A, rows % A)
    is_end = torch.zeros(S, dtype=torch.bool) if environment.ends is None else environment.ends
    is_observed = torch.ones(S * A, dtype=torch.bool) if is_observed is None else is_observed
    pays = torch.stack([outcome.r_a, outcome.r_b[:, 0], Game.welfare(outcome)])
    return Rules(
        pays.numpy(),
        outcome.s_next.numpy(),
        is_end.numpy(),
        weights.flatten().numpy(),
        is_observed.numpy(),
    )
