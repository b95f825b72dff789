"""Policy and expected value of a decision maker in each cell of a grid world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from components.contracts.posteriors import Played
from components.figures.style import RED, Figures, bare, new_figure
from components.games.agents.policies import in_every_state

if TYPE_CHECKING:
    from components.games.environments.standing import EpisodeGame


def grid_policy(
    game: EpisodeGame,
    play: Played,
    rows: int,
    columns: int,
    moves: Sequence[tuple[int, int]],
    ends: Sequence[tuple[int, int]],
) -> Figures:
    """Plot max_a ψ(s, a) of each cell, mean over replicates, and arrows with lengths proportional
    to the share of replicates with this greedy action.

    ``moves`` are (down, right) of each action; ``ends``, the terminal cells, have neither."""
    device = game.environment.device
    values = in_every_state(play.values_at, rows * columns, game.replicates, device)
    psi = values.transpose(0, 1).cpu()  # [S, R, A]
    best = (psi == psi.amax(-1, keepdim=True)).double()
    share = (best / best.sum(-1, keepdim=True)).mean(1)  # ties are split  # [S, A]
    value = psi.amax(-1).mean(1).view(rows, columns)
    for row, column in ends:
        value[row, column] = torch.nan

    figure, (axis,) = new_figure(width=0.9 * columns + 1.8, height=0.9 * rows + 0.9)
    image = axis.imshow(value, cmap="Blues")
    figure.colorbar(image, ax=axis, label="expected return")
    for row in range(rows):
        for column in range(columns):
            if (row, column) in ends:
                axis.text(
                    column,
                    row,
                    f"target {list(ends).index((row, column)) + 1}",
                    ha="center",
                    va="center",
                    fontsize=8,
                )
                continue
            for (down, right), p in zip(moves, share[columns * row + column].tolist(), strict=True):
                if p > 0.02:
                    axis.annotate(
                        "",
                        (column + 0.45 * p * right, row + 0.45 * p * down),
                        (column, row),
                        arrowprops={"arrowstyle": "-|>", "color": RED, "lw": 1.5},
                    )
    bare(axis)
    axis.set_title(f"greedy moves of {game.replicates} replicate{'s' * (game.replicates > 1)}")
    return {"grid_policy": figure}
