"""Scores of a played game."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from components.contracts.checks import NamedScores, check_shape
from components.contracts.games import TabularGame
from components.contracts.posteriors import Played
from components.games.agents.policies import in_every_state
from components.games.environments.standing import EpisodeGame
from components.games.equilibria.matrix_games import worst_case
from components.games.opponents.fixed_policy import FixedPolicy


def score_play(game: EpisodeGame, play: Played) -> NamedScores:
    """Scores of a played game: numbers for one replicate, [R] for several."""
    check_shape("the rewards", play.rewards, game.replicates, None)
    values = scores(play.rewards, game.tail, game.window)
    if play.opponent_rewards.numel():
        values |= score_opponents(play.opponent_rewards, game.tail, game.window)
    if play.firsts.numel():
        values |= frequencies(play.firsts, game.tail)
    values |= exploitability(game, play) | expected_reward(game, play) | play.beliefs
    several = game.replicates > 1
    return {name: value if several else float(value) for name, value in values.items()}


def exploitability(game: EpisodeGame, play: Played) -> dict[str, Tensor]:
    """Exploitability of the agent's current policy [R] by adversarial opponents that know it, in
    units of reward per episode.

    max_p min_b E[Σ r_A] − min_b E_π[Σ r_A] ≥ 0 from the start of the next episode; all opponents
    are treated as one, and taxes and incentives are excluded. No score is returned for games
    without tables.

    Source: Johanson, Waugh, Bowling and Zinkevich (2011); Shapley (1953) for the game's value.
    """
    rules = game.environment
    if not isinstance(rules, TabularGame) or game.best_guarantee is None:
        return {}
    device = game.environment.device
    policy = in_every_state(play.policy_in, rules.n_states, game.replicates, device)
    least = worst_case(rules.reward_a, rules.transition, rules.ends, policy, rules.horizon)
    loss = game.best_guarantee[play.s] - least.gather(1, play.s.unsqueeze(1)).squeeze(1)
    return {"exploitability": loss}


def expected_reward(game: EpisodeGame, play: Played) -> dict[str, Tensor]:
    """Expected reward of the agent's current policy [R] against one opponent with fixed
    probabilities, in games of one state and one move; no score for others.

        Σ_a Σ_b π(a) y(b) r_A(a, b)

    The sum is exact: it has no noise of drawn actions."""
    rules = game.environment
    opponent = game.opponents()[-1]
    if (
        not isinstance(rules, TabularGame)
        or (rules.n_states, rules.horizon, len(rules.n_threats)) != (1, 1, 1)
        or not isinstance(opponent, FixedPolicy)
    ):
        return {}
    rewards = rules.reward_a[0]
    y = opponent.probabilities(rewards.shape[1]).to(rewards)
    return {"expected_reward": play.policy_in(play.s) @ (rewards @ y)}


def scores(rewards: Tensor, tail: float, window: int) -> dict[str, Tensor]:
    """Mean reward over the last ``tail`` share of the episodes and over the last ``window``, total
    reward, and standard deviation between episodes of the last share; [R, t] -> [R] each."""
    last = rewards[:, -_count_tail_episodes(tail, rewards) :]
    means = _means("reward", rewards, last, window)
    return means | {"total_reward": rewards.sum(1), "reward_sd": last.std(1, False)}


def _means(name: str, values: Tensor, last: Tensor, window: int) -> dict[str, Tensor]:
    """Means over the last episodes and over the last ``window``."""
    return {name: last.mean(1), f"recent_{name}": values[:, -window:].mean(1)}


def score_opponents(opponent_rewards: Tensor, tail: float, window: int) -> dict[str, Tensor]:
    """The same scores for the mean opponent and for social utility; rewards and welfare [M + 1, R,
    t] -> [R] each."""
    last = _count_tail_episodes(tail, opponent_rewards)
    opponents = opponent_rewards[:-1].mean(0)
    welfare = opponent_rewards[-1]
    return _means("reward_opponents", opponents, opponents[:, -last:], window) | _means(
        "social_utility", welfare, welfare[:, -last:], window
    )


def frequencies(firsts: Tensor, tail: float) -> dict[str, Tensor]:
    """Share of action 0 (often cooperation) among the moves of the last episodes; [1 + M, R, t] ->
    [R].

    Episodes without moves of a player are NaN and excluded; the result is empty
    without any move."""
    last = firsts[:, :, -_count_tail_episodes(tail, firsts) :]
    mean = torch.nanmean if last.isnan().any() else torch.mean
    shares = mean(last, 2)
    named = {"first_action": shares[0], "first_action_opponents": mean(shares[1:], 0)}
    return {name: share for name, share in named.items() if not share.isnan().any()}


def _count_tail_episodes(tail: float, played: Tensor) -> int:
    return max(1, math.ceil(tail * played.shape[-1]))


def moving_average(rewards: Tensor, window: int) -> Tensor:
    """Mean of every ``window`` consecutive episodes: rewards [R, t] -> [R, t − window + 1] for
    window ≤ t."""
    window = min(window, rewards.shape[1])
    total = torch.nn.functional.pad(rewards.cumsum(1), (1, 0))
    return (total[:, window:] - total[:, :-window]) / window
