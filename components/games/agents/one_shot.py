"""Agent that solves the one-shot game and plays one of its equilibria."""

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
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.agents.player import Player
from components.games.environments.transition import Transition
from components.games.equilibria.matrix_games import Equilibrium, best_commitment, equilibria
from components.registry import register


@dataclass
class OneShotState:
    """The game, its equilibria, and the agent's strategy."""

    strategy: Tensor  # [R, A]
    values: Tensor  # E_y[r(a, b)] at the selected equilibrium [R, A]
    scores: dict[str, Tensor] = not_checkpointed()
    seat: Seat = not_checkpointed()


def bimatrix(rules: Environment, seat: Seat, tax: float, rng: Rng) -> tuple[Tensor, Tensor]:
    """r_A and r_B [A, B] of a first round under the rules of the environment, after a tax."""
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

    The agent plays x_A ∈ argmax_x xᵀ r_A y and the opponent likewise.  All pure and mixed
    equilibria are found by support enumeration, for the rewards of a first round after a constant
    ``tax``.  Among several, the agent plays the one with the highest mean reward (``plays=best``)
    or the lowest (worst; ties: the first); ``attacker=learner`` with the same keys plays its other
    side.  With ``plays=lead`` it commits to the mixed strategy with the highest payoff against an
    opponent that observes x and plays a best response (``best_commitment``): a Stackelberg
    equilibrium.

    Scores "equilibria/…" count the equilibria by kind: both players choose their first action
    (``both_first``, cooperation) or their last (``both_last``), other pure equilibria (``apart``)
    and mixed ones (``mixed``).  They also include the probability of the agent's first action in
    the first mixed one (``mixed_first``); the agent's gain from deviating from the first actions
    (``temptation``, the missing incentive; they are an equilibrium if it is below 0) and, with
    taxes, the tax at which this gain becomes 0 (``tax_both_first``), and the tax at which
    deviating from the last actions becomes profitable (``tax_both_last``).  For T, R, P, S with S
    = 0 both appendices give 2(1 − R/T) and 2(P − S)/T; 4.B omits the case between them, a stag
    hunt if the first is smaller; for T = 6, R = 5, P = 1 both are 1/3.

    With ``plays=lead`` also the agent's payoff as leader (``lead``) and its excess over the best
    Nash payoff (``lead_gain`` ≥ 0).

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
                f"inference={self.name}: supports only tabular games with two players and one move"
            )
        if not all(bool((r == r[:1]).all()) for r in (rules.reward_a, rules.reward_b)):
            raise ConfigMismatchError(
                f"inference={self.name}: supports only a single round, but the rewards of this game depend on the state"
            )
        if isinstance(rules, ChangingEnvironment):
            rules = rules.at(0)
        if self.tax and not isinstance(rules, TaxedEnvironment):
            raise ConfigMismatchError(
                f"inference.tax={self.tax:g} ({self.name}): this game has no taxes; set it to 0"
            )
        r_a, r_b = bimatrix(rules, seat, self.tax, rng)
        payoffs = [r.double().cpu().numpy() for r in (r_a, r_b)]
        solutions = equilibria(*payoffs)
        scores = self._kinds(solutions) | self._thresholds(rules, seat, r_a, rng)
        if self.plays == "lead":
            played = best_commitment(*payoffs)
            lead, *nash = (
                float(solution.x @ payoffs[0] @ solution.y) for solution in (played, *solutions)
            )
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
        # ties: the first
        return max(found, key=lambda one: sign * round(float(one.x @ mean @ one.y), 9))

    @staticmethod
    def _kinds(found: list[Equilibrium]) -> dict[str, float]:
        mixed = [solution for solution in found if not solution.pure]
        first, last = (
            sum(solution.x[i] == solution.y[i] == 1 for solution in found) for i in (0, -1)
        )
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
                if start * end < 0:  # gains are linear in the rate
                    scores[f"equilibria/{name}"] = start / (start - end)
        return scores

    def think(self, mind: OneShotState, s: Tensor, episode: int) -> Tensor:
        return mind.values

    def policy_at(self, mind: OneShotState, s: Tensor, episode: int) -> Tensor:
        return mind.strategy

    def learn(self, mind: OneShotState, seen: Transition, episode: int) -> None:
        """Do nothing: the strategy is fixed."""

    def beliefs(self, mind: OneShotState) -> dict[str, Tensor]:
        return mind.scores
