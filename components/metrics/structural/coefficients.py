"""Parameters of a series one by one: what is known of them, and how far their chains agree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from components.contracts.posteriors import HoldsDraws, Selects
from components.maths.particles.order_statistics import quantiles
from components.metrics import diagnostics

if TYPE_CHECKING:
    import pandas as pd


def rhat_of(draws: HoldsDraws) -> dict[str, float]:
    """Split R̂ of each parameter that moved, by name; nothing of one chain, or of fewer than four draws of each.

    Source: Gallego (2021), Table 1.7."""
    if draws.n_chains < 2 or draws.n_draws < diagnostics.FEWEST_DRAWS or draws.log_weights is not None:
        return {}
    found = zip(draws.names, diagnostics.split_rhat(draws.values).tolist(), strict=True)
    return {name: value for name, value in found if not math.isnan(value)}


def coefficient_table(draws: HoldsDraws, selects: Selects) -> pd.DataFrame:
    """A line for each parameter: mean, sd, central 90 %, how often a column is in, what a unit of an input adds to all that
    follows (median and central 90 %), bulk ESS and R̂; empty where there is no such thing."""
    import pandas as pd

    values = draws.values.flatten(0, 1)
    lower, upper = (x.squeeze(0) for x in quantiles(values.unsqueeze(0), (0.05, 0.95)))
    table = pd.DataFrame({"name": draws.names, "mean": values.mean(0).tolist(), "sd": values.std(0).tolist()})
    table["lower"], table["upper"] = lower.tolist(), upper.tolist()
    table["inclusion"] = [selects.inclusion.get(name, math.nan) for name in draws.names]
    levels = values.new_tensor([0.05, 0.5, 0.95])  # of totals that may be infinite: no numbers between them
    totals = {
        name: torch.quantile(total, levels, interpolation="nearest").tolist()
        for name, total in selects.long_run.items()
    }
    for k, column in enumerate(("long_run_lower", "long_run", "long_run_upper")):
        table[column] = [totals.get(name.removesuffix("_lag"), [math.nan] * 3)[k] for name in draws.names]
    enough = draws.n_draws >= diagnostics.FEWEST_DRAWS
    table["ess"] = diagnostics.bulk_ess(draws.values).tolist() if enough else math.nan
    rhat = rhat_of(draws)
    table["rhat"] = [rhat.get(name, math.nan) for name in draws.names]
    return table
