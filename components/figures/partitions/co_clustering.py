"""Co-clustering probabilities of rows, and number of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from components.figures.style import BLUE, GREY, PALETTE, RED, Figure, colour_of, new_figure


def co_clustering(rows: Tensor, sizes: Tensor, together: Any, partition: Any, loss: str) -> Figure:
    """Probability that two rows share a cluster, with rows ordered by the chosen partition; number
    of clusters by chain; the partition.

    Args:
        rows: the N rows [N, D].
        sizes: numbers of clusters of every draw [C, S].
        together: probabilities that two rows share a cluster [N, N].
        partition: the Bayes action [N].
        loss: name of its loss.
    """

    figure, (left_axis, middle_axis, right_axis) = new_figure(1, 3, width=4.3, height=3.8)
    x = rows.cpu().numpy()
    order = np.lexsort((x[:, 0], partition))
    image = left_axis.imshow(
        together[np.ix_(order, order)], vmin=0, vmax=1, cmap="Blues", interpolation="nearest"
    )
    for edge in np.flatnonzero(np.diff(partition[order])) + 0.5:
        left_axis.axhline(edge, color=RED, lw=0.7)
        left_axis.axvline(edge, color=RED, lw=0.7)
    left_axis.grid(False)
    left_axis.set(
        xlabel="row, by cluster", ylabel="row, by cluster", title="P(i and j in one cluster | x)"
    )
    figure.colorbar(image, ax=left_axis, shrink=0.8)

    n_clusters = sizes.numpy()
    k = np.arange(n_clusters.min(), n_clusters.max() + 1)
    for chain in n_clusters:
        middle_axis.plot(k, [(chain == n).mean() for n in k], color=GREY, lw=0.8, alpha=0.7)
    middle_axis.bar(k, [(n_clusters == n).mean() for n in k], color=BLUE, alpha=0.8)
    middle_axis.set(
        xlabel="clusters", ylabel="posterior probability", title="Number of clusters (grey: chains)"
    )

    middle_axis.locator_params(axis="x", integer=True)

    across = x[:, 1] if x.shape[1] > 1 else np.zeros(len(x))
    for c in range(int(partition.max()) + 1):
        colour = colour_of(c)
        marker = "os^Dv"[c // len(PALETTE) % 5]
        right_axis.plot(
            x[partition == c, 0], across[partition == c], marker, ms=4, color=colour, alpha=0.8
        )
    words = {"binder": "Binder's loss", "variation": "variation of information"}
    right_axis.set(
        xlabel="$x_1$",
        ylabel="$x_2$" if x.shape[1] > 1 else "",
        title=f"Least {words[loss]}: {partition.max() + 1} clusters",
    )
    return figure
