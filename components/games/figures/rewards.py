"""Smoothed reward against episode, with the spread over replicates (Gallego Fig 4.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.figures.style import LINES, Figure, Figures, colour_of, legend_above, new_figure
from components.games.game_scores import moving_average

if TYPE_CHECKING:
    from components.contracts.posteriors import Played
    from components.games.environments.standing import EpisodeGame


def reward_curves(curves: dict[str, Tensor], window: int) -> Figure:
    """Plot moving averages of rewards [R, t], one curve per label: mean and central 90 % of the
    replicates."""
    figure, (axes,) = new_figure(width=6.0)
    for k, (label, rewards) in enumerate(curves.items()):
        colour = colour_of(k)
        smooth = moving_average(rewards.double().cpu(), window)
        episode = torch.arange(rewards.shape[1] - smooth.shape[1] + 1, rewards.shape[1] + 1)
        if len(smooth) > 1:
            low, high = smooth.quantile(torch.tensor([0.05, 0.95], dtype=torch.float64), dim=0)
            axes.fill_between(
                episode.numpy(), low.numpy(), high.numpy(), color=colour, alpha=0.2, linewidth=0
            )
        mean = smooth.mean(0).numpy()
        # curves of players in a symmetric game may coincide
        line = "o" if len(mean) == 1 else LINES[k % len(LINES)]
        axes.plot(episode.numpy(), mean, line, color=colour, label=label)
    axes.set(xlabel="episode", ylabel=f"reward, mean of {min(window, rewards.shape[1])} episodes")
    n = max(len(rewards) for rewards in curves.values())
    axes.set_title(
        f"mean of {n} replicates, bands: 90 % of them" if n > 1 else "1 replicate", fontsize=10
    )
    legend_above(axes)
    return figure


def draw(game: EpisodeGame, play: Played) -> Figures:
    """Plot the rewards of one run: of the decision maker, the opponents, and social utility.

    Social utility is omitted if it is 0 throughout.
    """
    curves = {"decision maker": play.rewards}
    if play.opponent_rewards.numel():
        theirs = play.opponent_rewards[:-1]
        curves |= {
            f"opponent {m + 1}" if len(theirs) > 1 else "opponent": theirs[m]
            for m in range(len(theirs))
        }
        if bool(play.opponent_rewards[-1].any()):
            curves["social utility"] = play.opponent_rewards[-1]
    return {"rewards": reward_curves(curves, game.window)}
