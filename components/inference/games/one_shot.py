"""The one-shot game solved: she plays an equilibrium of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Changing, Environment, Seat, TableOfRewards, Taxed
from components.contracts.roles import Probability
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.inference.games.player import Player
from components.maths.matrix_games import Equilibrium, equilibria
from components.problems.episodes.transition import Transition
from components.registry import register
from components.trouble import Misfit


@dataclass
class Settled:
    """The game, all its equilibria, and what she plays."""

    strategy: Tensor  # [R, A]
    values: Tensor  # E_y[r(a, b)] at the equilibrium that is played [R, A]
    scores: dict[str, Tensor] = rebuilt()
    seat: Seat = rebuilt()


def bimatrix(rules: Environment, seat: Seat, tax: float, rng: Rng) -> tuple[Tensor, Tensor]:
    """r_A and r_B [A, B] of a first round, as the rules of the environment itself pay them, after a tax."""
    A, B = rules.n_actions, rules.n_threats[0]
    pairs = torch.cartesian_prod(torch.arange(A, device=seat.device), torch.arange(B, device=seat.device))
    a, b = pairs[:, 0], pairs[:, 1:]
    outcome = rules.step(rules.reset(A * B, rng.init), a, b, rng.init)
    if isinstance(rules, Taxed):
        outcome = rules.after_tax(outcome, a, b, torch.full_like(outcome.r_a, tax))
    return outcome.r_a.view(A, B), outcome.r_b.view(A, B)


@register("inference", "one_shot")
class OneShot(Player[Settled]):
    """She solves the game as if it were played once, and plays one of its equilibria: x_A ∈ argmax_x xᵀ r_A y and likewise he.

    All are found, pure and mixed, by enumeration of supports, in the rewards that the rules pay in a first round after a
    constant ``tax``.  Of several she plays the one of the highest mean reward (``plays=best``) or of the lowest (worst), the
    first found where they tie; ``attacker=learner`` with the same keys plays the other side of it.  Scores: how many there are,
    and of what kind, "equilibria/…": both choose their first action (``both_first``: they cooperate), or their last
    (``both_last``), pure ones that are neither (``apart``), mixed ones (``mixed``) and the probability of her first action in
    the first of these (``mixed_first``); what she gains by turning away from the first actions (``temptation``: the incentive
    that is missing; below 0 they are an equilibrium) and, where there are taxes, the tax at which that becomes 0
    (``tax_both_first``), and that at which it becomes worth her while to turn away from the last actions (``tax_both_last``).
    For T, R, P, S and S = 0 both appendices say 2(1 − R/T) and 2(P − S)/T; 4.B leaves out the case between them, a stag hunt
    where the first is the smaller; for T = 6, R = 5, P = 1 both are 1/3.

    Raises Misfit where the rewards of a round depend on the state, and in games of more moves or players.

    Source: Gallego (2021), appendices 4.B and 4.C; Nash (1951)."""

    tax: Probability
    plays: Literal["best", "worst"]

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> Settled:
        rules = seat.environment
        if not isinstance(rules, TableOfRewards) or len(rules.n_threats) > 1 or rules.horizon > 1:
            raise Misfit(
                f"inference={self.name}: solves games in tables of two players and one move, which this one is not"
            )
        if not all(bool((r == r[:1]).all()) for r in (rules.reward_a, rules.reward_b)):
            raise Misfit(
                f"inference={self.name}: the rewards of this game depend on the state; it solves a single round"
            )
        if isinstance(rules, Changing):
            rules = rules.at(0)
        if self.tax and not isinstance(rules, Taxed):
            raise Misfit(f"inference.tax={self.tax:g} ({self.name}): there are no taxes in this game; leave it at 0")
        r_a, r_b = bimatrix(rules, seat, self.tax, rng)
        found = equilibria(r_a.double().cpu().numpy(), r_b.double().cpu().numpy())
        played = self._select(found, r_a, r_b)
        x, y = (torch.as_tensor(z, device=seat.device, dtype=seat.dtype) for z in played)
        strategy, worth = (x, r_a @ y) if seat.number is None else (y, x @ r_b)
        scores = self._kinds(found) | self._thresholds(rules, seat, r_a, rng)
        each = {name: torch.full((seat.replicates,), score, dtype=seat.dtype) for name, score in scores.items()}
        return Settled(strategy.repeat(seat.replicates, 1), worth.repeat(seat.replicates, 1), each, seat)

    def _select(self, found: list[Equilibrium], r_a: Tensor, r_b: Tensor) -> Equilibrium:
        mean = ((r_a + r_b) / 2).double().cpu().numpy()
        sign = 1 if self.plays == "best" else -1
        return max(found, key=lambda one: sign * round(float(one.x @ mean @ one.y), 9))  # the first of equals

    @staticmethod
    def _kinds(found: list[Equilibrium]) -> dict[str, float]:
        pure, mixed = [one for one in found if one.pure], [one for one in found if not one.pure]
        first = [one for one in pure if one.x[0] == 1 and one.y[0] == 1]
        last = [one for one in pure if one.x[-1] == 1 and one.y[-1] == 1]
        scores = {
            "number": len(found),
            "both_first": len(first),
            "both_last": len(last),
            "apart": len(pure) - len(first) - len(last),
            "mixed": len(mixed),
        }
        told = {f"equilibria/{name}": float(number) for name, number in scores.items()}
        return told | ({"equilibria/mixed_first": float(mixed[0].x[0])} if mixed else {})

    @staticmethod
    def _thresholds(rules: Environment, seat: Seat, r_a: Tensor, rng: Rng) -> dict[str, float]:
        def gains(r: Tensor) -> tuple[float, float]:
            """What she gains by turning away from both first actions, and from both last."""
            return float(r[1:, 0].max() - r[0, 0]), float(r[:-1, -1].max() - r[-1, -1])

        scores = {"equilibria/temptation": gains(r_a)[0]}
        if isinstance(rules, Taxed) and r_a.shape == (2, 2):
            without, whole = (gains(bimatrix(rules, seat, rate, rng)[0]) for rate in (0.0, 1.0))
            for name, start, end in zip(("tax_both_first", "tax_both_last"), without, whole, strict=True):
                if start * end < 0:  # a gain is linear in the rate
                    scores[f"equilibria/{name}"] = start / (start - end)
        return scores

    def think(self, mind: Settled, s: Tensor, episode: int) -> Tensor:
        return mind.values

    def policy_at(self, mind: Settled, s: Tensor, episode: int) -> Tensor:
        return mind.strategy

    def learn(self, mind: Settled, seen: Transition, episode: int) -> None:
        """There is nothing left to learn."""

    def beliefs(self, mind: Settled) -> dict[str, Tensor]:
        return mind.scores
