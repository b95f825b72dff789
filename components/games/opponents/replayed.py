"""Opponent that replays recorded actions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from components.contracts.games import Move, Seat, Turn
from components.contracts.opponents import Opponent
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError, DataUnavailableError
from components.registry import register


@dataclass(frozen=True)
class ReplayState:
    """Position in the replayed file."""

    t: int
    actions: Tensor = not_checkpointed()  # [T] long
    replicates: int = not_checkpointed()


@register("attacker", "replayed")
class ReplayedOpponent(Opponent[ReplayState]):
    """Opponent that replays actions from a file, identical in all replicates.

    The file has one action number (from 0) per line.

    Raises:
        DataUnavailableError: the file cannot be read.
        ConfigMismatchError: a line is not the number of an action, or the game is longer than the
            file.

    Source: Gallego (2021), section 4.3.1 (a non-strategic opponent, with observed actions).
    """

    knowledge = "black box"

    file: str

    def reset(self, seat: Seat, rng: Rng) -> ReplayState:
        try:
            lines = Path(self.file).read_text(encoding="utf-8").rstrip().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataUnavailableError(
                f"attacker.file={self.file}: cannot be read ({error})"
            ) from None
        words = [(k, word) for k, line in enumerate(lines, 1) for word in line.split() or [""]]
        for number, word in words:
            if not word.isdecimal() or int(word) >= seat.own:
                raise ConfigMismatchError(
                    f"attacker.file={self.file}, line {number}: {word!r} is not one of the actions 0 … {seat.own - 1}; "
                    "give one action per line, without blank lines"
                )
        return ReplayState(
            0, torch.tensor([int(word) for _, word in words], device=seat.device), seat.replicates
        )

    def act(self, state: ReplayState, turn: Turn, rng: Rng) -> Tensor:
        if state.t >= len(state.actions):
            raise ConfigMismatchError(
                f"attacker.file={self.file}: ends after {state.t} actions, before the end of the game"
            )
        return state.actions[state.t].expand(state.replicates)

    def observe(self, state: ReplayState, move: Move) -> ReplayState:
        return replace(state, t=state.t + 1)
