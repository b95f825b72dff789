"""Error of a filter against the budget of an attacker."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from components.figures.style import GREY, RED, Figure, legend_above, new_figure

WIDE = 30.0  # ratio of largest to smallest error above which the axis is logarithmic


def error_curve_figure(
    sizes: list[float], errors: Tensor, random: Tensor, name: str, trusted: bool
) -> Figure:
    """Mean errors over replicates with the central 90 %, under the attack and under random signs of
    the same size; the line is at twice the clean error.  Errors [S, R]."""
    figure, (axis,) = new_figure(1, 1, width=6.0, height=3.6)
    for values, style, colour, label in (
        (errors, "o-", RED, "attack"),
        (random, "s--", GREY, "random signs"),
    ):
        samples = values.cpu().numpy()
        low, high = np.quantile(samples, (0.05, 0.95), axis=1)
        axis.plot(sizes, samples.mean(1), style, color=colour, label=label)
        axis.fill_between(sizes, low, high, color=colour, alpha=0.15, lw=0)
    axis.axhline(
        2 * float(errors[0].mean()), color="black", ls=":", lw=1, label="twice the clean error"
    )
    axis.set(
        xlabel="budget ε, in standard deviations of the observation noise",
        ylabel=f"{name.upper()} of the states",
    )
    both = torch.stack([errors, random])
    if 0 < WIDE * float(both.min()) < float(both.max()):
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)
    count = f"{errors.shape[1]} replicate{'s' * (errors.shape[1] > 1)}"
    axis.set_title(
        f"Security evaluation curve, {count} (bands: 90 % of them)"
        if trusted
        else "A sanity check failed: see the table attack_checks",
        color="black" if trusted else RED,
        fontsize=11,
    )
    legend_above(axis)
    return figure
