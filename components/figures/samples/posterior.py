"""The standard figures of draws, each (problem, draws) -> {name: Figure}."""

from __future__ import annotations

from components.figures.samples.autocorrelation import autocorrelation
from components.figures.samples.energy import energy
from components.figures.samples.pairs import pairs
from components.figures.samples.ranks import ranks
from components.figures.samples.trace import trace

POSTERIOR_FIGURES = (trace, ranks, pairs, autocorrelation, energy)
