"""Energy of a Hamiltonian sampler, for assessing its momentum resampling (Betancourt 2016)."""

from __future__ import annotations

import numpy as np

from components.contracts.posteriors import HoldsDraws
from components.figures.samples.parameters import Target
from components.figures.style import BLUE, RED, Figures, legend_above, new_figure
from components.metrics.diagnostics import FEWEST_DRAWS, e_bfmi


def energy(problem: Target | None, draws: HoldsDraws) -> Figures:
    """Left: energies E − Ē of all chains and changes ΔE between draws; if ΔE is much narrower, the
    sampler explores slowly.  Right: E-BFMI of each chain, with a line at 0.3 below which it is too
    small.

    Nothing is drawn if the sampler has no energy."""
    if "energy" not in draws.stats or draws.n_draws < FEWEST_DRAWS:
        return {}

    values = draws.stats["energy"].detach().double().cpu()  # [C, N]
    centred = (values - values.mean()).flatten().numpy()
    steps = values.diff(dim=1).flatten().numpy()
    figure, (left_axis, right_axis) = new_figure(1, 2, width=4.2, height=3.0)
    reach = float(np.abs(np.concatenate([centred, steps])).max()) or 1.0
    bins = np.linspace(-reach, reach, 61).tolist()
    for sample, name, colour in (
        (centred, "E − mean of E", BLUE),
        (steps, "E − E of the previous draw", RED),
    ):
        left_axis.hist(sample, bins=bins, density=True, alpha=0.5, color=colour, label=name)
    left_axis.set(xlabel="energy", ylabel="density")
    left_axis.locator_params(axis="x", nbins=5)
    legend_above(left_axis)
    by_chain = e_bfmi(values).numpy()
    right_axis.bar(np.arange(1, len(by_chain) + 1), by_chain, color=BLUE, alpha=0.75)
    right_axis.axhline(
        0.3, color="0.35", linewidth=0.8, linestyle="--", label="too small below 0.3"
    )
    legend_above(right_axis)
    right_axis.set(xlabel="chain", ylabel="E-BFMI")
    right_axis.set_xlim(0.4, len(by_chain) + 0.6)
    right_axis.locator_params(axis="x", integer=True)
    return {"energy": figure}
