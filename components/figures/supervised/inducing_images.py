"""Inducing images of a multi-task deep GP's first level, before and after training."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.capabilities import InducingInputs
from components.contracts.posteriors import Predicts, module_of
from components.contracts.problems import LabelledProblem
from components.contracts.streams import Rng
from components.figures.style import Axes, Figures, bare, new_figure


def _dominant_process(n_groups: int, weights: Tensor) -> int:
    """Index of an owner's group of inducing inputs, the group with the largest weight.

    If the inducing inputs are tied, there is only one group.
    """
    return int(weights.argmax()) if n_groups == weights.numel() else 0


def inducing_images(
    problem: LabelledProblem, posterior: Predicts, rng: Rng, n_images: int = 4
) -> Figures:
    """The inducing images that changed most, before and after training.

    They belong to the shared and to each task's own processes.  If all start from the same
    images, one column shows the initial ones.  If processes have separate inducing images, the
    figure has the images of the process with the task's largest ARD weight (for shared processes,
    the largest weight summed over tasks).  Every image has its own grey scale, from its 1st to its
    99th percentile; the number is the root mean square change of its pixels.  Nothing is drawn
    unless inputs are images and the posterior's module has ``InducingInputs``.

    Source: Boustati (2021), Fig 3.4.
    """
    module = module_of(posterior)
    if problem.image_shape is None or not isinstance(module, InducingInputs):
        return {}
    owners = _owners(problem, module)
    if not owners:
        return {}
    # [M] each
    changes = [(trained - initial).square().mean(-1).sqrt().cpu() for _, initial, trained in owners]
    # title, images, owner, True if after training
    columns: list[tuple[str, Tensor, int, bool]] = []
    if all(torch.equal(initial, owners[0][1]) for _, initial, _ in owners):
        order = [torch.stack(changes).mean(0)] * len(owners)
        columns.append(("before", owners[0][1], 0, False))
        columns += [(name, trained, i, True) for i, (name, _, trained) in enumerate(owners)]
    else:
        order = changes
        for i, (name, initial, trained) in enumerate(owners):
            columns.append((f"{name}\nbefore", initial, i, False))
            columns.append(("after", trained, i, True))
    # a task may have fewer than the shared processes
    rows = min(n_images, *(len(z) for _, _, z in owners))

    figure, axes = new_figure(rows, len(columns), width=1.45, height=1.6)
    for row in range(rows):
        for column, (title, z, owner, is_trained) in enumerate(columns):
            ax = axes[row * len(columns) + column]
            m = int(order[owner].argsort(descending=True, stable=True)[row])
            change = float(changes[owner][m]) if is_trained else None
            _show(ax, z[m].reshape(problem.image_shape).cpu().double(), change)
            if row == 0:
                ax.set_title(title, fontsize=9)
    return {"inducing_images": figure}


def _owners(problem: LabelledProblem, module: InducingInputs) -> list[tuple[str, Tensor, Tensor]]:
    """Title, and inducing images [M, D] before and after training."""
    now = module.inducing_inputs()
    start = module.initial_inducing_inputs()
    weights = module.ard_weights()
    # the weights belong to the processes of the last level and do not describe the first
    if module.n_levels != 1:
        weights = torch.zeros_like(weights)
    kinds = [name[0] for name in module.process_names]
    shared, specific = (
        [d for d, kind in enumerate(kinds) if kind in letters] for letters in ("gλ", "h")
    )
    owners = []
    if "shared 1" in now:
        group = _dominant_process(len(now["shared 1"]), weights[:, shared].sum(0))
        owners.append(("shared", start["shared 1"][group], now["shared 1"][group]))
    if "specific 1" in now:
        per_task = len(now["specific 1"]) // problem.n_tasks
        for t, name in enumerate(problem.task_names):
            group = t * per_task + _dominant_process(per_task, weights[t, specific])
            title = f"own: {name}".replace("background", "bg")
            owners.append((title, start["specific 1"][group], now["specific 1"][group]))
    return owners


def _show(ax: Axes, image: Tensor, change: float | None) -> None:
    low, high = (float(image.quantile(level)) for level in (0.01, 0.99))
    ax.imshow(image, cmap="gray", vmin=low, vmax=max(high, low + 0.05), interpolation="nearest")
    bare(ax)
    if change is not None:
        ax.set_xlabel(f"changed by {change:.2f}", fontsize=7, color="0.35", labelpad=2)
