"""Images under attack: clean, perturbation, and attacked with predicted class (Gallego Fig 3.5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from components.figures.style import BLACK, RED, Figure, new_figure
from components.maths.spacing import row_numbers

CHANGE = "RdBu_r"  # red: more, blue: less


def _image(row: Tensor, shape: tuple[int, ...]) -> np.ndarray:
    image = row.detach().cpu().double().reshape(shape).numpy()
    return np.moveaxis(image, 0, -1) if len(shape) == 3 else image


def choose_examples(before: Tensor, after: Tensor, y: Tensor, n: int) -> Tensor:
    """Numbers of up to n images: the first half have a different class under attack.

    Among these, correctly classified images come first.  If there are too few for one half, the
    other half is larger.

    Args:
        before: predicted classes of the clean images [B].
        after: predicted classes of the attacked images [B].
        y: true classes [B].
        n: number of images.
    """
    rows = row_numbers(before)
    changed = before != after
    correct = before == y
    broken = torch.cat([rows[changed & correct], rows[changed & ~correct]])
    standing = rows[~changed]
    n_broken = max(n - n // 2, n - len(standing))
    chosen = broken[:n_broken]
    return torch.cat([chosen, standing[: n - len(chosen)]])


def attacked_examples_figure(
    x: Tensor,  # [B, D]
    attacked: Tensor,  # [B, D]
    before: Tensor,  # [B] predicted classes of x
    after: Tensor,  # [B]
    y: Tensor,  # [B] true classes; −1: not known
    shape: tuple[int, ...],
    title: str,
    class_names: Sequence[str],
) -> Figure:
    """Three rows of images: clean, perturbation with its scale, attacked.

    The title of each image shows its true and its predicted class, in the second colour if the
    prediction is wrong.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    n = len(x)
    figure, axes = new_figure(3, n, width=max(1.2, 4.8 / n), height=1.4)
    low = float(x.min())
    high = float(x.max())
    delta = attacked - x
    largest = max(float(delta.abs().max()), 1e-12)
    for i in range(n):
        change = _image(delta[i], shape)
        if change.ndim == 3:  # mean over the channels of a colour image
            change = change.mean(-1)
        rows: list[tuple[np.ndarray, str, tuple[float, float], int | None]] = [
            (_image(x[i], shape), "gray", (low, high), int(before[i])),
            (change, CHANGE, (-largest, largest), None),
            (_image(attacked[i], shape), "gray", (low, high), int(after[i])),
        ]
        for row, (image, colours, (darkest, brightest), guess) in enumerate(rows):
            axis = axes[row * n + i]
            axis.imshow(image.squeeze(), cmap=colours, vmin=darkest, vmax=brightest)
            axis.set(xticks=[], yticks=[])
            axis.grid(False)
            if guess is not None:
                truth, label = (_class_name(c, class_names) for c in (int(y[i]), guess))
                axis.set_title(
                    f"{truth} → {label}",
                    color=BLACK if guess == int(y[i]) else RED,
                    fontsize=11 if len(truth + label) <= 4 else 7,
                )
    for row, name in enumerate(("clean", "added", "attacked")):
        axes[row * n].set_ylabel(name)
    scale = ScalarMappable(Normalize(-largest, largest), CHANGE)
    figure.colorbar(scale, ax=axes, label="added", format="%.2g", shrink=0.3, aspect=8)
    figure.suptitle(f"{title}\ntrue → predicted class, wrong predictions in orange", fontsize=9)
    return figure


def _class_name(c: int, names: Sequence[str]) -> str:
    """Name of a class, its number if it has no name, or ? if it is not known."""
    if c < 0:
        return "?"
    return names[c] if c < len(names) else str(c)
