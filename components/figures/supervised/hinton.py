"""Hinton diagrams of the ARD weights of a multi-task deep GP's top layer."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.capabilities import ArdWeights
from components.contracts.posteriors import Predicts, module_of
from components.contracts.problems import LabelledProblem
from components.contracts.streams import Rng
from components.figures.style import BLUE, RED, Figure, Figures, bare, new_figure, show_entries

KINDS = {  # first letter of a process's name -> colour, label in the legend
    "g": (BLUE, "shared process"),
    "λ": (BLUE, "shared process"),
    "h": (RED, "task-specific process"),
    "x": ("0.45", "input passed on"),
}
MOST_COLUMNS = 40  # number of columns above which the inputs passed on share one


def hinton_diagram(weights: Tensor, process_names: list[str], task_names: list[str]) -> Figure:
    """Squares with areas proportional to the weights ω [T, D].

    The largest fills 0.92² of its cell.  Processes g1, g2, … and λ1, λ2, … are shared,
    h1, h2, … task-specific, x1, x2, … inputs.
    """
    from matplotlib.patches import Patch, Rectangle

    weights = weights.detach().double().cpu()
    n_tasks, n_processes = weights.shape
    largest = float(weights.max())
    cell = 0.36  # inches
    figure, (ax,) = new_figure(
        width=max(cell * n_processes + 1.7, 4.8), height=cell * n_tasks + 1.2
    )
    bare(ax)
    ax.set(xlim=(-0.5, n_processes - 0.5), ylim=(n_tasks - 0.5, -0.5), aspect="equal")
    for t in range(n_tasks + 1):
        ax.axhline(t - 0.5, color="0.9", linewidth=0.6, zorder=0)
    for d in range(n_processes + 1):
        # a line between two kinds
        between = 0 < d < n_processes and process_names[d][0] != process_names[d - 1][0]
        ax.axvline(
            d - 0.5, color="0.35" if between else "0.9", linewidth=1.0 if between else 0.6, zorder=0
        )
    for d, name in enumerate(process_names):
        for t in range(n_tasks):
            side = 0.92 * (float(weights[t, d]) / largest) ** 0.5 if largest > 0 else 0.0
            ax.add_patch(
                Rectangle(
                    (d - side / 2, t - side / 2),
                    side,
                    side,
                    facecolor=KINDS[name[0]][0],
                    linewidth=0,
                )
            )
    letters = {"λ": r"\lambda", "Σ": r"\Sigma"}
    ax.set_xticks(
        range(n_processes),
        [f"${letters.get(n[0], n[0])}_{{{letters.get(n[1:], n[1:])}}}$" for n in process_names],
    )
    ax.set_yticks(range(n_tasks), task_names)
    ax.tick_params(length=0)
    present = dict.fromkeys(KINDS[name[0]] for name in process_names)
    figure.supxlabel(
        f"area of a square ∝ ARD weight ω;  the largest is {largest:.3g}", fontsize=8, color="0.35"
    )
    show_entries(figure, {label: Patch(color=colour) for colour, label in present}, fontsize=9)
    return figure


def hinton(problem: LabelledProblem, posterior: Predicts, rng: Rng) -> Figures:
    """Top-layer ARD weights, tasks × latent processes, shared and task-specific processes in two
    colours.

    Inputs passed on to the top layer are a third kind; if there are many, one column has their sum.
    Nothing is drawn unless the posterior's module has ``ArdWeights``.

    Source: Boustati (2021), eq. (3.15), Figs 3.5 and A.1."""
    module = module_of(posterior)
    if not isinstance(module, ArdWeights):
        return {}
    with torch.no_grad():
        weights = module.ard_weights()  # [T, D]
    names = problem.task_names
    processes = list(module.process_names)
    inputs = torch.tensor([name[0] == "x" for name in processes])
    if len(processes) > MOST_COLUMNS and inputs.any():
        weights = torch.cat(
            [weights.cpu()[:, ~inputs], weights.cpu()[:, inputs].sum(1, keepdim=True)], 1
        )
        processes = [name for name in processes if name[0] != "x"] + ["xΣ"]
    names = names or [f"task {t + 1}" for t in range(weights.shape[0])]
    return {"hinton": hinton_diagram(weights, processes, names)}
