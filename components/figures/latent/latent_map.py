"""Held-out rows in the plane of the two best determined latent dimensions."""

from __future__ import annotations

import torch

from components.contracts.capabilities import LatentVariable
from components.contracts.posteriors import module_of
from components.contracts.problems import Rows, UnlabelledProblem
from components.contracts.streams import Rng
from components.figures.style import Figures, colour_of, new_figure, scatter


def latent_map(problem: UnlabelledProblem, posterior: object, rng: Rng) -> Figures:
    """Means of q(z|x) of the held-out rows in the two latent dimensions with the largest variance of
    m over mean of s², coloured by class if known.

    Nothing is drawn unless the posterior's module is an encoder of two dimensions or more.

    Source: Titsias and Lawrence (2010), Fig 1; Lawrence (2005), Fig 2."""
    module = module_of(posterior)
    test = problem.test
    if not isinstance(module, LatentVariable) or not isinstance(test, Rows):
        return {}
    if module.latent_dim < 2:
        return {}
    with torch.no_grad():
        means, scales = (part.cpu() for part in module.encode(test))  # [B, D]
    certainty = means.var(0, correction=0) / scales.square().mean(0)
    first, second = certainty.argsort(descending=True)[:2].tolist()
    figure, (ax,) = new_figure(width=4.4, height=4.0)
    classes = problem.test_classes
    labels = torch.zeros(len(means), dtype=torch.long) if classes is None else classes.cpu()
    for k, c in enumerate(labels.unique().tolist()):
        some = means[labels == c]
        name = None if classes is None else f"class {c}"
        scatter(ax, some[:, [first, second]], s=9, color=colour_of(k), label=name)
    ax.set(xlabel=f"$z_{{{first + 1}}}$", ylabel=f"$z_{{{second + 1}}}$")
    if classes is not None:
        ax.legend(fontsize=8)
    return {"latent_map": figure}
