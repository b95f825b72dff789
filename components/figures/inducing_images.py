"""Inducing images of a multi-task deep GP's first level, before and after training."""

from __future__ import annotations

from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from components.figures.style import new_figure
from components.interfaces import Rng


def _process(n_groups: int, weights: Tensor) -> int:
    """Which of an owner's groups of inducing inputs: that of the largest weight, or the only one if they are tied."""
    return int(weights.argmax()) if n_groups == weights.numel() else 0


def inducing_images(problem, posterior, rng: Rng, n_images: int = 4) -> dict[str, Figure]:
    """The inducing images that moved most: as they started, then in the shared and in each task's own processes.

    Where processes have inducing images of their own, those of the process to which the task gives the largest ARD
    weight are shown (for the shared ones, the largest summed over tasks).  A row has one grey scale, so that images can
    be compared along it; the number is the root mean square change of its pixels.  Nothing is drawn unless inputs are
    images and the posterior's module has ``inducing_inputs`` and ``initial_inducing_inputs``.

    Source: Boustati (2021), Fig 3.4."""
    module: Any = getattr(posterior, "module", None)
    if problem.image_shape is None or not hasattr(module, "initial_inducing_inputs"):
        return {}
    now, start, weights = module.inducing_inputs(), module.initial_inducing_inputs(), module.ard_weights()
    if len(module.levels) != 1:  # the weights are those of the last level's processes: they say nothing about the first
        weights = torch.zeros_like(weights)
    kinds = [name[0] for name in module.process_names]
    shared, own = ([d for d, kind in enumerate(kinds) if kind in letters] for letters in ("gλ", "h"))
    panels: list[tuple[str, Tensor]] = []  # title, inducing images [M, D] now
    before: Tensor | None = None
    if "shared 1" in now:
        group = _process(len(now["shared 1"]), weights[:, shared].sum(0))
        before = start["shared 1"][group]
        panels.append(("shared", now["shared 1"][group]))
    if "specific 1" in now:
        per_task = len(now["specific 1"]) // problem.n_tasks
        for t, name in enumerate(problem.task_names):
            group = t * per_task + _process(per_task, weights[t, own])
            before = start["specific 1"][group] if before is None else before  # every layer starts from the same images
            panels.append((f"own: {name}".replace("background", "bg"), now["specific 1"][group]))
    if before is None:
        return {}
    change = torch.stack([z - before for _, z in panels]).square().mean(-1).sqrt().cpu()  # [panels, M]
    chosen = change.mean(0).argsort(descending=True)[:n_images].tolist()

    columns_of = [("before", before), *panels]
    figure, axes = new_figure(len(chosen), len(columns_of), width=1.45, height=1.55)
    for row, m in enumerate(chosen):
        images = [z[m].reshape(problem.image_shape).cpu() for _, z in columns_of]
        low, high = min(0.0, *(float(i.min()) for i in images)), max(1.0, *(float(i.max()) for i in images))
        for column, image in enumerate(images):
            ax = axes[row * len(columns_of) + column]
            ax.imshow(image, cmap="gray", vmin=low, vmax=high, interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            for spine in ax.spines.values():
                spine.set_visible(False)
            if row == 0:
                ax.set_title(columns_of[column][0], fontsize=9)
            if column:
                ax.set_xlabel(f"changed by {float(change[column - 1, m]):.2f}", fontsize=7, color="0.35", labelpad=2)
    return {"inducing_images": figure}
