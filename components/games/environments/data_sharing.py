"""Data sharing game between a citizen and operators, with taxes and incentives by a regulator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal

import torch
from pydantic import Field, NonNegativeFloat, NonNegativeInt
from torch import Tensor

from components.contracts.capabilities import NumberedStates
from components.contracts.games import Outcome
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.errors import IncompleteResultWarning
from components.games.environments.game import Game
from components.games.environments.game_dataset import Dilemma
from components.games.environments.table_environment import TableEnvironment, repeat_game
from components.registry import register

TaxedPlayers = Literal["all", "defectors"]


@dataclass(frozen=True)
class Market(TableEnvironment):
    """The repeated game, ``TaxedEnvironment`` and ``ChangingEnvironment``."""

    incentive: float = 0.0  # I to each player if all cooperate
    incentive_until: int = 0  # first episode without incentives
    payers: TaxedPlayers = "all"

    @cached_property
    def _remove_incentive(self) -> Market:
        return replace(self, incentive=0.0)

    def at(self, episode: int) -> Market:
        """The rules of an episode, with or without the incentive."""
        return (
            self
            if self.incentive == 0 or episode < self.incentive_until
            else self._remove_incentive
        )

    def step(self, s: Tensor, a: Tensor, b: Tensor, generator: torch.Generator) -> Outcome:
        outcome = super().step(s, a, b, generator)
        if self.incentive == 0:
            return outcome
        subsidy = self.incentive * ((a == 0) & (b == 0).all(1)).to(self.dtype)
        return outcome._replace(
            r_a=outcome.r_a + subsidy, r_b=outcome.r_b + subsidy.unsqueeze(1), given=subsidy
        )

    def after_tax(self, outcome: Outcome, a: Tensor, b: Tensor, rate: Tensor) -> Outcome:
        """r̃ = r − τ r + k⁻¹ Σ τ r of k players; if only defectors pay, τ r is 0 for cooperators.

        A negative reward is not taxed.
        """
        earned = torch.cat([outcome.r_a.unsqueeze(0), outcome.r_b.T])  # [k, R]
        tax = rate * earned.clamp_min(0)
        if self.payers == "defectors":
            tax = tax * torch.cat([a.unsqueeze(0), b.T]).to(tax.dtype)
        net = earned - tax + tax.mean(0)
        return outcome._replace(r_a=net[0], r_b=net[1:].T)


def share_in_pairs(pair: Tensor, players: int) -> tuple[Tensor, Tensor]:
    """Rewards of k players in all pairs: r_i = (k − 1)⁻¹ Σ_{j ≠ i} u(a_i, a_j).

    Args:
        pair: u [2, 2], reward of the first of two players.
        players: k.

    Returns:
        Rewards of the first player [2, 2^(k−1)] and of the others [2, 2^(k−1), k − 1].
    """
    each = torch.cartesian_prod(*[torch.arange(2, device=pair.device)] * players)  # [2^k, k]
    met = pair[each.unsqueeze(2), each.unsqueeze(1)]  # [2^k, k, k]
    rewards = (met.sum(2) - met.diagonal(dim1=1, dim2=2)) / (players - 1)
    rewards = rewards.view(2, -1, players)
    return rewards[..., 0], rewards[..., 1:]


@register("dataset", "data_sharing")
class DataSharing(Dilemma):
    """Sale of data by a citizen to operators: an iterated prisoner's dilemma with taxes.

    Incentives are possible too.  Two players cooperate (0: the citizen sells and protects
    true data, the operator pays and protects) or defect (1); (C, C) pays R, R, (C, D) S, T,
    (D, C) T, S and (D, D) P, P.  With k > 2 ``players``, each takes one action against all others
    and gets the mean reward of its k − 1 pairs.  If all cooperate, each also gets ``incentive`` in
    the episodes before ``incentive_until``.  A regulator (``attacker=together`` with a third party
    as last member) taxes at a rate τ: r̃_a = r_a − τ r_a + k⁻¹ Σ τ r, with ``tax_on`` all players
    (sections 4.5.4 and 4.C) or only defectors (4.B).  If T − R = P − S = l and R − S = g,
    cooperation is dominant under a tax on all players with τ ≥ l / (l + (g − l)/k).  Social utility
    (4.4) excludes incentives.  An episode is one round; the state is the joint action of the
    previous round, or a single state.

    Warns if T > R > P > S and 2R > T + S do not hold.

    Source: Gallego (2021), section 4.5, Tables 4.3 to 4.5; k > 2 after the remark in 4.5.4.
    """

    simulates = {NumberedStates}

    players: Annotated[int, Field(ge=2, le=8)]

    incentive: NonNegativeFloat
    incentive_until: NonNegativeInt
    tax_on: TaxedPlayers

    def load(self, rng: Rng, setting: Setting) -> Game:
        if not (self.T > self.R > self.P > self.S and 2 * self.R > self.T + self.S):
            warnings.warn(
                IncompleteResultWarning(
                    "dataset: the game is not a prisoner's dilemma, because T > R > P > S and 2R > T + S do not both hold"
                ),
                stacklevel=1,
            )
        pair = setting.place(self.pair_payoffs())
        rewards = share_in_pairs(pair, self.players)
        rounds = repeat_game(*rewards, (2,) * (self.players - 1), self.memory)
        environment = Market(
            **vars(rounds),
            incentive=self.incentive,
            incentive_until=self.incentive_until,
            payers=self.tax_on,
        )
        return self.build_game(environment, setting)
