"""The figures that every sample of draws is shown in: each (problem, draws) -> {name: Figure}."""

from __future__ import annotations

from components.figures.autocorrelation import autocorrelation
from components.figures.energy import energy
from components.figures.pairs import pairs
from components.figures.ranks import ranks
from components.figures.trace import trace

POSTERIOR_FIGURES = (trace, ranks, pairs, autocorrelation, energy)
