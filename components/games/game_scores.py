"""Scores of a played game."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def scores(rewards: Tensor, tail: float, window: int) -> dict[str, Tensor]:
    """Mean reward over the last ``tail`` share of the episodes and over the last ``window``, total,
    and standard deviation of single episodes over the last share; [R, t] -> [R] each."""
    last = rewards[:, -_count_tail_episodes(tail, rewards) :]
    recent = rewards[:, -window:].mean(1)
    return {
        "reward": last.mean(1),
        "recent_reward": recent,
        "total_reward": rewards.sum(1),
        "reward_sd": last.std(1, False),
    }


def score_opponents(beside: Tensor, tail: float, window: int) -> dict[str, Tensor]:
    """The same of the opponents (their mean) and of social utility; what each got and welfare [M +
    1, R, t] -> [R] each."""
    last = _count_tail_episodes(tail, beside)
    theirs = beside[:-1].mean(0)
    welfare = beside[-1]
    return {
        "reward_opponents": theirs[:, -last:].mean(1),
        "recent_reward_opponents": theirs[:, -window:].mean(1),
        "social_utility": welfare[:, -last:].mean(1),
        "recent_social_utility": welfare[:, -window:].mean(1),
    }


def frequencies(firsts: Tensor, tail: float) -> dict[str, Tensor]:
    """Share of moves over the last episodes that was action 0 (to cooperate, where it means that);
    [1 + M, R, t] -> [R].

    Episodes in which a player made no move are NaN and left out; a share of no moves at all is no
    score."""
    last = firsts[:, :, -_count_tail_episodes(tail, firsts) :]
    if last.isnan().any():
        shares = last.nanmean(2)
        others = last.nanmean(2)[1:].nanmean(0)
    else:
        shares = last.mean(2)
        others = last.mean(2)[1:].mean(0)
    named = {"first_action": shares[0], "first_action_opponents": others}
    return {name: share for name, share in named.items() if not share.isnan().any()}


def _count_tail_episodes(tail: float, played: Tensor) -> int:
    return max(1, math.ceil(tail * played.shape[-1]))


def moving_average(rewards: Tensor, window: int) -> Tensor:
    """Mean of every ``window`` consecutive episodes: rewards [R, t] -> [R, t − window + 1] (window
    at most t)."""
    window = min(window, rewards.shape[1])
    total = torch.nn.functional.pad(rewards.cumsum(1), (1, 0))
    return (total[:, window:] - total[:, :-window]) / window
