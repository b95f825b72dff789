"""One move of a game."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.games import Move, Outcome, TaxedEnvironment, Turn
from components.contracts.streams import Rng
from components.games.environments.standing import EpisodeGame, GameState
from components.games.environments.transition import Transition, both, joint_action


def welfare(outcome: Outcome) -> Tensor:
    """Social utility SU = (r_A + Σ_m r_B^m)/(M + 1) without external rewards [R], eq. (4.4); it
    does not depend on taxes."""
    mean = (outcome.r_a + outcome.r_b.sum(1)) / (1 + outcome.r_b.shape[1])
    return mean if outcome.given is None else mean - outcome.given


def play_move(
    game: EpisodeGame,
    standing: GameState,
    turn: Turn,
    a: Tensor,
    live: Tensor | None,
    rng: Rng,
    *,
    cut: bool,
) -> Transition:
    """Play one move, given the agent's action a [R].

    Each opponent chooses without observing a, and then updates its memory with its own
    observation. ``cut`` means that the horizon ends the episode here. The tax rate of a third party
    is applied to all rewards.
    """
    players = game.opponents()
    environment = game.rules_at(turn.episode)
    seats = len(environment.n_threats)
    memories = [standing.adversary, *standing.others]
    actions = [
        player.act(memory, turn, rng) for player, memory in zip(players, memories, strict=True)
    ]
    each = torch.stack(actions[:seats], 1)  # [R, M]
    outcome = environment.step(turn.s, a, each, rng.batches)
    utility = welfare(outcome)
    if len(actions) > seats:
        assert isinstance(environment, TaxedEnvironment), (
            "only taxed environments have a seat for a third party"
        )
        outcome = environment.after_tax(outcome, a, each, actions[-1])
    gains = [*outcome.r_b.unbind(1), utility]  # the objective of a third party is welfare
    targets, is_observed = environment.observe(turn.s, a)
    transition = Transition(
        s=turn.s,
        a=a,
        b=joint_action(each, environment.n_threats),
        each=each,
        r_a=outcome.r_a,
        r_b=outcome.r_b,
        s_next=outcome.s_next,
        done=outcome.done,
        live=live,
        cut=cut,
        welfare=utility,
        truncated=outcome.truncated,
        opponents=outcome.opponents,
    )
    after = []
    for m, (player, memory, b, r) in enumerate(
        zip(players, memories, actions, gains, strict=False)
    ):
        side = transition.opponent_transition(m) if m < seats else transition
        move = Move(
            episode=turn.episode,
            s=turn.s,
            s_next=outcome.s_next,
            a=a,
            r_hers=outcome.r_a,
            b=b,
            r=r,
            shown=targets,
            seen=both(is_observed, side.live),
            done=side.done,
            live=side.live,
            cut=cut,
            truncated=side.truncated,
        )
        after.append(player.observe(memory, move))
    standing.adversary, *standing.others = after
    return transition
