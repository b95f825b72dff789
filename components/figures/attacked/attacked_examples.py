"""Images under attack: as they were, what was added, and what they are taken for (Gallego Fig
3.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from components.figures.style import PALETTE, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _image(row: Tensor, shape: tuple[int, ...]) -> np.ndarray:
    image = row.detach().cpu().double().reshape(shape).numpy()
    return np.moveaxis(image, 0, -1) if len(shape) == 3 else image


def attacked_examples_figure(
    x: Tensor,  # [B, D]
    attacked: Tensor,  # [B, D]
    before: Tensor,  # [B] predicted classes of x
    after: Tensor,  # [B]
    y: Tensor,  # [B] true classes
    shape: tuple[int, ...],
    eps: float,
    attacker: str,
) -> Figure:
    """Three rows of images: clean, perturbation (red: more, blue: less), attacked; wrong
    predictions in colour."""
    n = len(x)
    figure, axes = new_figure(3, n, width=1.2, height=1.35)
    low = float(x.min())
    high = float(x.max())
    delta = attacked - x
    largest = max(float(delta.abs().max()), 1e-12)
    for i in range(n):
        change = _image(delta[i], shape)
        if change.ndim == 3:  # of a colour image, the mean over its channels
            change = change.mean(-1)
        rows: list[tuple[np.ndarray, str, tuple[float, float], int | None]] = [
            (_image(x[i], shape), "gray", (low, high), int(before[i])),
            (change, "RdBu_r", (-largest, largest), None),
            (_image(attacked[i], shape), "gray", (low, high), int(after[i])),
        ]
        for row, (image, colours, (darkest, brightest), guess) in enumerate(rows):
            axis = axes[row * n + i]
            axis.imshow(image.squeeze(), cmap=colours, vmin=darkest, vmax=brightest)
            axis.set(xticks=[], yticks=[])
            axis.grid(False)
            if guess is not None:
                axis.set_title(f"{guess}", color=PALETTE[6] if guess == int(y[i]) else PALETTE[1])
    for row, name in enumerate(("clean", "added", "attacked")):
        axes[row * n].set_ylabel(name)
    figure.suptitle(
        f"{attacker}, ε = {eps:g}; above each image the class it is taken for, wrong ones in red",
        fontsize=9,
    )
    return figure
