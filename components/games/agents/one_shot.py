"""Solver of the one-shot game: the agent plays an equilibrium of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import (
    ChangingEnvironment,
    Environment,
    Seat,
    TabularGame,
    TaxedEnvironment,
)
from components.contracts.roles import ZeroToOne
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.agents.player import Player
from components.games.environments.transition import Transition
from components.games.equilibria.matrix_games import Equilibrium, best_commitment, equilibria
from components.registry import register


@dataclass
class OneShotState:
    """The game, all its equilibria, and the agent's strategy."""

    strategy: Tensor  # [R, A]
    values: Tensor  # E_y[r(a, b)] at the equilibrium that is played [R, A]
    scores: dict[str, Tensor] = rebuilt()
    seat: Seat = rebuilt()


def bimatrix(rules: Environment, seat: Seat, tax: float, rng: Rng) -> tuple[Tensor, Tensor]:
    """r_A and r_B [A, B] of a first round, as the rules of the environment itself pay them, after a
    tax."""
    A = rules.n_actions
    B = rules.n_threats[0]
    pairs = torch.cartesian_prod(
        torch.arange(A, device=seat.device), torch.arange(B, device=seat.device)
    )
    a = pairs[:, 0]
    b = pairs[:, 1:]
    outcome = rules.step(rules.reset(A * B, rng.init), a, b, rng.init)
    if isinstance(rules, TaxedEnvironment):
        outcome = rules.after_tax(outcome, a, b, torch.full_like(outcome.r_a, tax))
    return outcome.r_a.view(A, B), outcome.r_b.view(A, B)


@register("inference", "one_shot")
class OneShot(Player[OneShotState]):
    """Equilibrium play: solves the game as if played once and plays an equilibrium.

    The agent plays x_A ∈ argmax_x xᵀ r_A y and the opponent likewise.  All equilibria, pure
    and mixed, are found by enumeration of supports, in the rewards that the rules pay in a
    first round after a constant ``tax``.  Among several the agent plays the one with the
    highest mean reward (``plays=best``) or the lowest (worst), the first found if they tie;
    ``attacker=learner`` with the same keys plays the other side of it.  With ``plays=lead``
    it commits to the mixed strategy that pays it most against an opponent that sees x and
    replies best (``best_commitment``): a Stackelberg equilibrium.

    Scores "equilibria/…": their number and kinds: both players choose their first action
    (``both_first``: they cooperate) or their last (``both_last``), other pure equilibria
    (``apart``), mixed ones (``mixed``) and the probability of the agent's first action in
    the first mixed one (``mixed_first``); the agent's gain from deviating from the first
    actions (``temptation``: the missing incentive; below 0 they are an equilibrium) and, if
    there are taxes, the tax at which that gain becomes 0 (``tax_both_first``), and the tax
    at which deviating from the last actions starts to pay for the agent
    (``tax_both_last``).  For T, R, P, S and S = 0 both appendices give 2(1 − R/T) and 2(P −
    S)/T; 4.B omits the case between them, a stag hunt if the first is the smaller; for
    T = 6, R = 5, P = 1 both are 1/3.

    With ``plays=lead`` also the agent's payoff as leader (``lead``) and by how much it
    exceeds its best Nash payoff (``lead_gain`` ≥ 0).

    Raises ConfigMismatchError if the rewards of a round depend on the state, and in games with more
    moves or players.

    Source: Gallego (2021), appendices 4.B and 4.C; Nash (1951); Conitzer and Sandholm (2006).
    """

    tax: ZeroToOne
    plays: Literal["best", "worst", "lead"]

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> OneShotState:
        rules = seat.environment
        if not isinstance(rules, TabularGame) or len(rules.n_threats) > 1 or rules.horizon > 1:
            raise ConfigMismatchError(
                f"inference={self.name}: solves games in tables of two players and one move, which this one is not"
            )
        if not all(bool((r == r[:1]).all()) for r in (rules.reward_a, rules.reward_b)):
            raise ConfigMismatchError(
                f"inference={self.name}: the rewards of this game depend on the state; it solves a single round"
            )
        if isinstance(rules, ChangingEnvironment):
            rules = rules.at(0)
        if self.tax and not isinstance(rules, TaxedEnvironment):
            raise ConfigMismatchError(
                f"inference.tax={self.tax:g} ({self.name}): there are no taxes in this game; leave it at 0"
            )
        r_a, r_b = bimatrix(rules, seat, self.tax, rng)
        payoffs = [r.double().cpu().numpy() for r in (r_a, r_b)]
        solutions = equilibria(*payoffs)
        scores = self._kinds(solutions) | self._thresholds(rules, seat, r_a, rng)
        if self.plays == "lead":
            played = best_commitment(*payoffs)
            lead, *nash = (float(one.x @ payoffs[0] @ one.y) for one in (played, *solutions))
            scores |= {"equilibria/lead": lead, "equilibria/lead_gain": lead - max(nash)}
        else:
            played = self._select(solutions, r_a, r_b)
        x, y = (torch.as_tensor(z, device=seat.device, dtype=seat.dtype) for z in played)
        strategy, worth = (x, r_a @ y) if seat.number is None else (y, x @ r_b)
        each = {
            name: torch.full((seat.replicates,), score, dtype=seat.dtype)
            for name, score in scores.items()
        }
        return OneShotState(
            strategy.repeat(seat.replicates, 1), worth.repeat(seat.replicates, 1), each, seat
        )

    def _select(self, found: list[Equilibrium], r_a: Tensor, r_b: Tensor) -> Equilibrium:
        mean = ((r_a + r_b) / 2).double().cpu().numpy()
        sign = 1 if self.plays == "best" else -1
        # the first of equals
        return max(found, key=lambda one: sign * round(float(one.x @ mean @ one.y), 9))

    @staticmethod
    def _kinds(found: list[Equilibrium]) -> dict[str, float]:
        mixed = [one for one in found if not one.pure]
        first, last = (sum(one.x[i] == one.y[i] == 1 for one in found) for i in (0, -1))
        scores = {
            "number": len(found),
            "both_first": first,
            "both_last": last,
            "apart": len(found) - len(mixed) - first - last,
            "mixed": len(mixed),
        }
        counts = {f"equilibria/{name}": float(number) for name, number in scores.items()}
        return counts | ({"equilibria/mixed_first": float(mixed[0].x[0])} if mixed else {})

    @staticmethod
    def _thresholds(rules: Environment, seat: Seat, r_a: Tensor, rng: Rng) -> dict[str, float]:
        def gains(r: Tensor) -> tuple[float, float]:
            """Gains of the agent from deviating from both first actions, and from both last
            actions."""
            return float(r[1:, 0].max() - r[0, 0]), float(r[:-1, -1].max() - r[-1, -1])

        scores = {"equilibria/temptation": gains(r_a)[0]}
        if isinstance(rules, TaxedEnvironment) and r_a.shape == (2, 2):
            without, full_tax = (gains(bimatrix(rules, seat, rate, rng)[0]) for rate in (0.0, 1.0))
            for name, start, end in zip(
                ("tax_both_first", "tax_both_last"), without, full_tax, strict=True
            ):
                if start * end < 0:  # a gain is linear in the rate
                    scores[f"equilibria/{name}"] = start / (start - end)
        return scores

    def think(self, mind: OneShotState, s: Tensor, episode: int) -> Tensor:
        return mind.values

    def policy_at(self, mind: OneShotState, s: Tensor, episode: int) -> Tensor:
        return mind.strategy

    def learn(self, mind: OneShotState, seen: Transition, episode: int) -> None:
        """There is nothing left to learn."""

    def beliefs(self, mind: OneShotState) -> dict[str, Tensor]:
        return mind.scores
