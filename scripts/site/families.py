"""Families of components: the folders that their files are in."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from components import registry
from scripts.site.links import ROOT

# Families are folders of components/; these have another title than the folder's name.
FAMILY_TITLES = {
    "datasets": "General",
    "datasets/arm": "Robot arm",
    "datasets/own": "Your own data",
    "datasets/rows": "Small simulated samples",
    "games/environments": "Games",
    "games/equilibria": "Equilibria of games",
    "games/agents": "Agents in games",
    "games/opponents": "Opponents in games",
    "gradients/bernoulli": "Gradients of Bernoulli variables",
    "gradients/pathwise": "Pathwise gradients",
    "gradients/score": "Score-function gradients",
    "inference/alpha": "α-divergences",
    "inference/averaging": "Averages along a training path",
    "inference/foundations": "Foundations of statistics",
    "inference/gaussian_weights": "Gaussians over weights",
    "inference/hamiltonian": "Hamiltonian Monte Carlo",
    "inference/implicit": "Implicit posteriors",
    "inference/latent": "Latent-variable models",
    "inference/linear": "Linear models in closed form",
    "inference/mcmc": "Markov chain Monte Carlo",
    "inference/partitions": "Partitions of rows",
    "inference/point": "Point estimates and ensembles",
    "inference/refined": "Refined posteriors",
    "inference/semi_implicit": "Semi-implicit posteriors",
    "inference/sgmcmc": "Stochastic-gradient MCMC",
    "inference/variational": "Variational bounds",
    "inference/variational/laboratory": "Gradient laboratory",
    "models": "General",
    "models/deep_gp": "Deep Gaussian processes",
    "models/foundations": "Foundations of statistics",
    "models/latent": "Latent-variable models",
    "models/linear": "Linear models",
    "models/multitask_gp": "Gaussian processes of several tasks",
    "models/networks/multi_task": "Multi-task networks",
    "models/own": "Your own networks",
    "models/shallow_gp": "Gaussian processes",
    "series/attackers": "Attacks on series",
    "series/beta_choice": "Choice of β for filters",
    "series/filtering": "Particle filters",
    "series/forecast_data": "Series to forecast",
    "series/gaussian_filtering": "Gaussian filters",
    "series/models": "State-space models",
    "series/parameters": "Parameters of state-space models",
    "series/sequence_data": "Series to filter",
    "series/smoothing": "Smoothers",
    "series/structural": "Structural time series",
    "series/structural/blocks": "Structural time series",
}


def family_of(entry: registry.Entry) -> Path:
    """Folder of a component's file, the family that it belongs to."""
    return entry.file.resolve().parent


@cache
def families(role: str) -> dict[Path, list[registry.Entry]]:
    """Components of a role by family, families by title."""
    by_family: dict[Path, list[registry.Entry]] = {}
    for entry in registry.catalogue(role):
        by_family.setdefault(family_of(entry), []).append(entry)
    return dict(sorted(by_family.items(), key=lambda item: family_title(item[0]).lower()))


def family_title(folder: Path) -> str:
    """Title of a family."""
    name = folder.relative_to(ROOT / "components").as_posix()
    return FAMILY_TITLES.get(name, folder.name.replace("_", " ").capitalize())


@cache
def family_sentence(folder: Path) -> str:
    """First sentence of the docstring of a family's package."""
    init = folder / "__init__.py"
    text = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) if init.exists() else ""
    return re.split(r"(?<=\.)\s", text or "")[0]
