"""Tables of action values."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor, nn

from components.contracts.games import NumberedStates
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.environments.game import Game
from components.memory import GIB, free_device_memory
from components.registry import register


class ActionWeights(nn.Module):
    """Weights of one player's action values: a row of own actions a and others' actions b for each
    of F states or features, R replicates."""

    values: Tensor  # [R, F, A, B]

    def __init__(self, values: Tensor, initial: float = 0.0):
        super().__init__()
        self.start_value = initial
        self.register_buffer("values", values)

    def initial_weights(self, own: int, other: int) -> Tensor:
        """Initial weights for a player with ``own`` actions against ``other`` ones."""
        return self.values.new_full((*self.values.shape[:2], own, other), self.start_value)


class Table(ActionWeights):
    """Table of one player's action values, a ``QFunction`` with one feature per state, F = S."""

    rows: Tensor  # [R] first row of each replicate among the R·S of the flattened table

    def __init__(self, values: Tensor, initial: float):
        super().__init__(values, initial)
        replicates, states = values.shape[:2]
        self.register_buffer("rows", torch.arange(replicates, device=values.device) * states)

    def fresh(self, own: int, other: int) -> Table:
        """A table at its initial values."""
        return Table(self.initial_weights(own, other), self.start_value)

    def q(self, s: Tensor) -> Tensor:
        """s [R] -> Q(s, ·, ·) [R, A, B]; for a single state the table itself, which ``learn``
        changes in place."""
        values = self.values
        return (
            values.select(1, 0)
            if values.shape[1] == 1
            else values.flatten(0, 1).index_select(0, self.rows + s)
        )

    def learn(self, s: Tensor, a: Tensor, b: Tensor, target: Tensor, rate: float | Tensor) -> None:
        """Q(s, a, b) := (1 − α) Q(s, a, b) + α target, in place; s, a, b, target and an α that is a
        tensor are [R]."""
        values = self.values
        _, states, n_actions, other = values.shape
        row = self.rows if states == 1 else self.rows + s
        cell = (row * n_actions + a) * other + b
        flat = values.view(-1)
        flat.index_copy_(0, cell, torch.lerp(flat.take(cell), target, rate))


@register("model", "q_table")
class QTable(Model[Game, Table]):
    """A table of action values Q(s, a, b), one cell for each state and pair of actions.

    All cells start at ``initial``. The shape is [R, S, A, B] for R replicates; the actions
    of several opponents are combined into one, B = ∏ B_m.

    Raises ConfigMismatchError for a game without state numbers, or if the table exceeds the free
    memory.

    Source: Gallego (2021), section 4.3.
    """

    requires = Requirements(kinds={"game"}, simulated={NumberedStates})

    initial: float

    def build(self, problem: Game, rng: Rng) -> Table:
        environment = problem.environment
        if not isinstance(environment, NumberedStates):
            raise ConfigMismatchError(
                f"model={self.name}: a table requires numbered states; they are missing in dataset={problem.name}"
            )
        shape = (problem.replicates, environment.n_states, problem.n_actions, problem.n_threats)
        size = prod(shape) * environment.dtype.itemsize
        free = free_device_memory(environment.device)
        if free is not None and size > free:
            shape_text = " × ".join(f"{n:,}" for n in shape)
            raise ConfigMismatchError(
                f"model={self.name}: a table of {shape_text} values needs {size / GIB:,.1f} GiB, "
                f"but {free / GIB:,.1f} are free; use fewer replicates, or model=q_network, with a "
                "size independent of the states"
            )
        return Table(
            torch.full(shape, self.initial, device=environment.device, dtype=environment.dtype),
            self.initial,
        )
