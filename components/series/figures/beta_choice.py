"""How β was chosen: the loss of each, or the choice at every time (Boustati section 6.3.3)."""

from __future__ import annotations

import torch
from torch import Tensor

from components.figures.style import BLUE, ORANGE, Figure, legend_above, new_figure
from components.series.figures.spread import draw_boxes, logarithmic


def beta_losses(betas: list[float], losses: Tensor, chosen: int, scored_on: str) -> Figure:
    """Losses [G, R] against β: a box over replicates (a point for one replicate), and the chosen β
    as a golden dashed line."""
    figure, (ax,) = new_figure(1, 1, width=6.4, height=3.6)
    places = list(range(len(betas)))
    finite_losses = [row[row.isfinite()] for row in losses]
    if losses.shape[1] == 1:
        ax.plot(places, losses[:, 0], "o-", color=BLUE, lw=1)
    else:
        values = [row.numpy() for row in finite_losses]
        draw_boxes(ax, values, places, [{"facecolor": BLUE}] * len(places))
    ax.axvline(chosen, color=ORANGE, ls="--", lw=1.8, label=f"chosen: β = {betas[chosen]:g}")
    if logarithmic(losses.numpy(), levelled=False):
        ax.set_yscale("log")
    ax.set_xticks(places, [f"{beta:g}" for beta in betas], rotation=35 if len(betas) > 6 else 0)
    ax.set(
        xlabel="β",
        ylabel="median standardised error",
        title=f"Prediction error by β, on {scored_on}",
    )
    legend_above(ax)
    return figure


def beta_over_time(betas: list[float], index: Tensor) -> Figure:
    """The β chosen at each time, from indices in the grid [R, T].

    The upper panel is the first replicate, the lower one the share of replicates at each β.
    """
    t = torch.arange(1, index.shape[1] + 1)
    several = len(index) > 1
    figure, axes = new_figure(1 + several, 1, width=9.0, height=2.8, sharex=True)
    axes[0].step(t, index[0], where="mid", color=BLUE, lw=1.2)
    axes[0].set(
        ylabel=f"β, replicate 1 of {len(index)}" if several else "β", ylim=(-0.5, len(betas) - 0.5)
    )
    if several:
        share = torch.stack([(index == g).double().mean(0) for g in range(len(betas))])  # [G, T]
        image = axes[1].imshow(
            share,
            origin="lower",
            aspect="auto",
            cmap="Blues",
            vmin=0,
            vmax=1,
            interpolation="nearest",
            extent=(0.5, index.shape[1] + 0.5, -0.5, len(betas) - 0.5),
        )
        axes[1].set_ylabel("β, all replicates")
        axes[1].grid(visible=False)
        figure.colorbar(image, ax=axes[1], label="share", pad=0.01)
    for axis in axes:
        axis.set_yticks(range(len(betas)), [f"{beta:g}" for beta in betas], fontsize=8)
    axes[-1].set_xlabel("t")
    return figure
