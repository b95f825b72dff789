"""The data sharing game between a citizen and an operator, with a regulator who taxes and gives
incentives."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal

import torch
from pydantic import NonNegativeFloat, NonNegativeInt
from torch import Tensor

from components.contracts.games import Outcome
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.errors import IncompleteResultWarning
from components.games.environments.game import Dilemma, Game
from components.games.environments.table_environment import TableEnvironment, repeat_game
from components.registry import register

TaxedPlayers = Literal["all", "defectors"]


@dataclass(frozen=True)
class Market(TableEnvironment):
    """The repeated game, ``TaxedEnvironment`` and ``ChangingEnvironment``."""

    incentive: float = 0.0  # I to each where both cooperate
    incentive_until: int = 0  # the episode from which on incentives stop
    payers: TaxedPlayers = "all"

    @cached_property
    def _remove_incentive(self) -> Market:
        return replace(self, incentive=0.0)

    def at(self, episode: int) -> Market:
        """The rules of an episode: with the incentive, or without."""
        return (
            self
            if self.incentive == 0 or episode < self.incentive_until
            else self._remove_incentive
        )

    def step(self, s: Tensor, a: Tensor, b: Tensor, generator: torch.Generator) -> Outcome:
        outcome = super().step(s, a, b, generator)
        if self.incentive == 0:
            return outcome
        subsidy = self.incentive * ((a == 0) & (b[:, 0] == 0)).to(self.dtype)
        return outcome._replace(
            r_a=outcome.r_a + subsidy, r_b=outcome.r_b + subsidy.unsqueeze(1), given=subsidy
        )

    def after_tax(self, outcome: Outcome, a: Tensor, b: Tensor, rate: Tensor) -> Outcome:
        """r̃ = r − τ r + ½ Σ τ r; if only defectors pay, τ r covers only their rewards.

        A negative reward is not taxed.
        """
        earned = torch.stack([outcome.r_a, outcome.r_b[:, 0]]).clamp_min(0)
        tax = rate * earned
        if self.payers == "defectors":
            tax = tax * torch.stack([a, b[:, 0]]).to(tax.dtype)
        r_a, r_b = torch.stack([outcome.r_a, outcome.r_b[:, 0]]) - tax + tax.mean(0)
        return outcome._replace(r_a=r_a, r_b=r_b.unsqueeze(1))


@register("dataset", "data_sharing")
class DataSharing(Dilemma):
    """A citizen sells data to an operator: an iterated prisoner's dilemma with taxes.

    There are incentives too.  Both players cooperate (0: the citizen sells and protects
    true data, the operator pays and protects) or defect (1); (C, C) pays R, R, (C, D) S, T,
    (D, C) T, S and (D, D) P, P.  If both cooperate each also gets ``incentive``, in the
    episodes before ``incentive_until``.  A regulator (``attacker=together``, a third party
    last) taxes at a rate τ: r̃_a = r_a − τ r_a + ½ Σ τ r, of ``tax_on`` all (sections 4.5.4
    and 4.C) or only defectors (4.B).  Social utility (4.4) leaves the incentives out.  One
    round an episode; the state is the pair of actions in the round before, or one.

    Warns if T > R > P > S and 2R > T + S do not hold.

    Source: Gallego (2021), section 4.5, Tables 4.3 to 4.5.
    """

    simulates: ClassVar[frozenset[str]] = frozenset({"numbered_states"})

    incentive: NonNegativeFloat
    incentive_until: NonNegativeInt
    tax_on: TaxedPlayers

    def load(self, rng: Rng, setting: Setting) -> Game:
        if not (self.T > self.R > self.P > self.S and 2 * self.R > self.T + self.S):
            warnings.warn(
                IncompleteResultWarning(
                    "dataset: T > R > P > S and 2R > T + S do not hold: no prisoner's dilemma"
                ),
                stacklevel=1,
            )
        payoff_a = torch.tensor(
            [[self.R, self.S], [self.T, self.P]], device=setting.device, dtype=setting.dtype
        )
        rounds = repeat_game(payoff_a, payoff_a.T[..., None], (2,), self.memory)
        environment = Market(
            **vars(rounds),
            incentive=self.incentive,
            incentive_until=self.incentive_until,
            payers=self.tax_on,
        )
        return self.build_game(environment, setting)
