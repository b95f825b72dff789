"""Rank plots, which show whether all chains visit all parts of the posterior equally often (Vehtari
et al. 2021, section 5)."""

from __future__ import annotations

import math

import numpy as np

from components.contracts.posteriors import HoldsDraws
from components.figures.samples.parameters import Target, parameters, part
from components.figures.style import BLUE, RED, Figures, label_below, panel_grid, show_entries
from components.metrics.array_stats import mean_ranks

MOST_CHAINS = 20
FEWEST_EXPECTED = 5  # number of ranks in a bin


def rank_histogram(values: np.ndarray, bins: int) -> np.ndarray:
    """Histogram for each chain of the ranks of its draws among the draws of all chains, in equal
    bins; [C, N] -> [C, bins].

    A chain that explores the whole posterior has about N/bins in each bin."""
    position = np.minimum(((mean_ranks(values) - 0.5) * bins / values.size).astype(int), bins - 1)
    return np.stack([np.bincount(row, minlength=bins) for row in position])


def ranks(problem: Target | None, draws: HoldsDraws) -> Figures:
    """One panel per parameter with one row per chain: the histogram of the ranks of the chain's
    draws among all draws.

    Grey bands contain 95 % of the counts of independent draws; bars outside them have the second
    colour and are clipped at the next row.  If there are more than 20 chains, evenly spaced ones
    are selected.  Nothing is drawn for one chain, for fewer than 10 draws, or for weighted
    draws."""
    panels = parameters(problem, draws)
    chains = draws.n_chains
    n = draws.n_draws
    if not panels or chains < 2 or n < 2 * FEWEST_EXPECTED or draws.log_weights is not None:
        return {}
    from matplotlib.patches import Patch

    bins = min(20, n // FEWEST_EXPECTED)
    expected = n / bins
    margin = 1.96 * math.sqrt(expected * (1 - 1 / bins) * (1 - 1 / chains))
    chain_ids = np.unique(np.linspace(0, chains - 1, min(chains, MOST_CHAINS)).round().astype(int))
    height = max(2.4, 0.24 * len(chain_ids) + 1.0)
    figure, axes, columns = panel_grid(len(panels), width=2.8, height=height, sharey=True)
    edges = np.linspace(0, 1, bins + 1)
    shown: set[str] = set()  # colours of bars
    for axis, (name, _, values) in zip(axes, panels, strict=True):
        counts = rank_histogram(values.numpy(), bins)
        # a row is one unit high; the expected count fills less than half of it
        scale = 0.42 / expected
        for row, c in enumerate(chain_ids):
            base = -row
            axis.fill_between(
                [0, 1],
                base + scale * (expected - margin),
                base + scale * (expected + margin),
                color="0.86",
                linewidth=0,
                zorder=1,
            )
            tall = np.minimum(scale * counts[c], 0.95)
            out = np.abs(counts[c] - expected) > margin
            for colour, is_drawn in ((BLUE, ~out), (RED, out)):
                if is_drawn.any():
                    shown.add(colour)
                    axis.stairs(
                        base + tall * is_drawn,
                        edges,
                        baseline=base,
                        fill=True,
                        color=colour,
                        alpha=0.75,
                        linewidth=0,
                        zorder=2,
                    )
        axis.set(title=name, xlim=(0, 1), ylim=(1 - len(chain_ids), 1), xticks=[0, 0.5, 1])
        axis.set_yticks(
            [0.42 - row for row in range(len(chain_ids))], [str(c + 1) for c in chain_ids]
        )
        axis.tick_params(labelsize=8)
        axis.grid(False)
    for axis in axes[::columns]:
        axis.set_ylabel("chain")
    entries = {"95 % of counts of independent draws": Patch(color="0.86")}
    for colour, label in ((BLUE, "inside"), (RED, "outside")):
        if colour in shown:
            entries[label] = Patch(color=colour, alpha=0.75)
    show_entries(figure, entries)
    label_below(axes, columns, "rank among all draws, as a fraction")
    title = "" if len(chain_ids) == chains else f"{len(chain_ids)} of {chains} chains"
    titles = (part(problem, draws, len(panels)), title)
    figure.suptitle(", ".join(filter(None, titles)), fontsize=10)
    return {"ranks": figure}
