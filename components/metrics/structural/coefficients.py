"""Parameters of a series: summaries of the posterior, and agreement of chains."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.contracts.posteriors import HoldsDraws, Selects
from components.maths.particles.order_statistics import quantiles
from components.metrics import diagnostics

if TYPE_CHECKING:
    import pandas as pd

CENTRAL = (0.025, 0.975)  # interval in every table


def parameter_rhats(draws: HoldsDraws) -> dict[str, float]:
    """Split R̂ of each parameter that moved, by name; empty for one chain, or for fewer than four
    draws per chain.

    Source: Gallego (2021), Table 1.7."""
    if (
        draws.n_chains < 2
        or draws.n_draws < diagnostics.FEWEST_DRAWS
        or draws.log_weights is not None
    ):
        return {}
    pairs = zip(draws.names, diagnostics.split_rhat(draws.values).tolist(), strict=True)
    return {name: value for name, value in pairs if not math.isnan(value)}


def effects_per_unit(draws: HoldsDraws, selects: Selects) -> dict[str, Tensor]:
    """Draws [C·N] of the effect of one unit of each column, standardised or not, in its units."""
    values = draws.values.flatten(0, 1)
    return {name: values[:, draws.names.index(name)] / unit for name, unit in selects.units.items()}


def effect_scores(draws: HoldsDraws, selects: Selects) -> dict[str, float]:
    """``per_unit`` and ``per_unit_sd`` of the coefficients of standardised columns, in the units of
    these columns."""
    out: dict[str, float] = {}
    for name, effect in effects_per_unit(draws, selects).items():
        if selects.units[name] != 1:
            out[f"per_unit/{name}"] = float(effect.mean())
            if len(effect) > 1:
                out[f"per_unit_sd/{name}"] = float(effect.std(correction=0))
    return out


def coefficient_table(draws: HoldsDraws, selects: Selects) -> pd.DataFrame:
    """A row for each parameter: moments, effects per unit, inclusion, bulk ESS and R̂.

    Mean, sd and central 95 % interval refer to one standard deviation of a standardised column; the
    same columns follow for one unit of the column.  Further columns are the share of draws that
    include the column, and the effect of one unit of an input on all later values (median and
    central 95 %).  Undefined entries, such as the sd of one draw, are empty.
    """
    import pandas as pd

    values = draws.values.flatten(0, 1)
    table = pd.DataFrame({"name": draws.names} | _moments(values))
    effects = effects_per_unit(draws, selects)
    nans = values.new_full((len(values),), math.nan)
    per_unit = torch.stack([effects.get(name, nans) for name in draws.names], 1)
    for column, numbers in _moments(per_unit).items():
        table["per_unit" if column == "mean" else f"per_unit_{column}"] = numbers
    table["inclusion"] = [selects.inclusion.get(name, math.nan) for name in draws.names]
    # totals may be infinite, so quantiles are not interpolated
    levels = values.new_tensor([CENTRAL[0], 0.5, CENTRAL[1]])
    totals = {
        name: torch.quantile(total, levels, interpolation="nearest").tolist()
        for name, total in selects.long_run.items()
    }
    if len(values) < 2:
        totals = {name: [math.nan, total[1], math.nan] for name, total in totals.items()}
    for k, column in enumerate(("long_run_lower95", "long_run", "long_run_upper95")):
        table[column] = [
            totals.get(name.removesuffix("_lag"), [math.nan] * 3)[k] for name in draws.names
        ]
    enough = draws.n_draws >= diagnostics.FEWEST_DRAWS
    table["ess"] = diagnostics.bulk_ess(draws.values).tolist() if enough else math.nan
    rhat = parameter_rhats(draws)
    table["rhat"] = [rhat.get(name, math.nan) for name in draws.names]
    return table


def _moments(values: Tensor) -> dict[str, list[float]]:
    """Mean, sd as in the scores, and central 95 % interval of draws [S, P].

    One draw has only a mean.
    """
    lower, upper = (x.squeeze(0) for x in quantiles(values.unsqueeze(0), CENTRAL))
    sd = torch.where(lower.isnan(), math.nan, values.std(0, correction=0))
    columns = {"mean": values.mean(0), "sd": sd, "lower95": lower, "upper95": upper}
    return {name: column.tolist() for name, column in columns.items()}
