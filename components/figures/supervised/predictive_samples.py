"""Draws from the predictive distribution of a problem with one input, with the training labels."""

from __future__ import annotations

import torch

from components.contracts.posteriors import Predicts
from components.contracts.predictive import GaussianMixture
from components.contracts.problems import LabelledProblem
from components.contracts.streams import Rng
from components.figures.style import PALETTE, Figures, new_figure
from components.figures.supervised.tasks import label_units
from components.maths.exponential.standard_draws import standard_normal

POINTS = 1000


def predictive_samples(problem: LabelledProblem, posterior: Predicts, rng: Rng) -> Figures:
    """Two panels in the units of the labels: training labels of the first task, and one draw y ~
    p(y|x) at each of a number of x.

    Nothing is drawn unless there is one real-valued input and the labels are real.

    Source: Rodríguez Santana and Hernández-Lobato (2020), Fig. 2."""
    if problem.target != "real" or problem.n_inputs != 1:
        return {}
    train = problem.train
    low = float(train.x.min())
    high = float(train.x.max())
    x = torch.linspace(low, high, POINTS, dtype=train.x.dtype, device=train.x.device)
    with torch.no_grad():
        predictive = problem.predictive_at(posterior, x[:, None], rng)
    if not isinstance(predictive, GaussianMixture):
        return {}
    location, scale = label_units(problem)
    generator = rng.at("evaluation", 0)
    component = torch.randint(
        len(predictive.mu), (POINTS,), generator=generator, device=generator.device
    ).to(x.device)
    rows = torch.arange(POINTS, device=x.device)
    noise = standard_normal((POINTS,), generator, x)
    y = predictive.mu[component, rows, 0] + predictive.v[component, rows, 0].sqrt() * noise

    figure, axes = new_figure(1, 2, width=4.2, height=3.2, sharex=True, sharey=True)
    is_labelled = train.mask[:, 0]
    panels = [
        (
            f"{int(is_labelled.sum()):,} training labels",
            train.x[is_labelled, 0],
            train.y[is_labelled, 0],
        ),
        (f"{POINTS:,} draws from p(y|x)", x, y),
    ]
    for ax, (title, inputs, labels), colour in zip(axes, panels, PALETTE, strict=False):
        ax.scatter(
            inputs.cpu(),
            (location[0] + scale[0] * labels).cpu(),
            s=5,
            color=colour,
            alpha=0.5,
            linewidth=0,
        )
        ax.set(title=title, xlabel="x (standardised)")
    axes[0].set_ylabel(problem.task_names[0])
    return {"predictive_samples": figure}
