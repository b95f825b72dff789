"""Coefficients of a linear model of a user's table, per standard deviation and per unit of each
column."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from components.contracts.posteriors import HoldsDraws
from components.metrics.structural.coefficients import coefficient_table, effect_scores

if TYPE_CHECKING:
    import pandas as pd

MOST_SCORED = 40  # columns with scores; the table has all


class ColumnUnits(NamedTuple):
    """``Selects`` with all columns included."""

    # for each parameter, the units of its column per unit of the linear predictor
    units: dict[str, float]
    inclusion: dict[str, float]
    positive: dict[str, float]
    long_run: dict[str, Tensor]


def parameter_columns(posterior: object, columns: list[str], classes: list[str]) -> dict[str, int]:
    """Indices of columns by names of coefficients, x1 … xD or x1/0 … of the first class; empty for
    other models."""
    if (
        not isinstance(posterior, HoldsDraws)
        or posterior.log_weights is not None
        or posterior.replicates > 1
    ):
        return {}
    suffixes = ["", *(f"/{k}" for k in range(len(classes)))]
    places = {f"x{j + 1}{end}": j for end in suffixes for j in range(len(columns))}
    matches = {name: places[name] for name in posterior.names if name in places}
    return (
        matches if posterior.n_draws and set(matches.values()) == set(range(len(columns))) else {}
    )


def parameter_label(parameter: str, columns: list[str], classes: list[str]) -> str:
    """The name of the column, and of the class if coefficients depend on it, instead of x1 and
    x1/0."""
    name, _, number = parameter.partition("/")
    column = columns[int(name[1:]) - 1] if name != "intercept" else name
    return f"{column}/{classes[int(number)]}" if number else column


def _units(places: dict[str, int], scale: Tensor, label_scale: float) -> ColumnUnits:
    units = {name: float(scale[j]) / label_scale for name, j in places.items()}
    return ColumnUnits(units, {}, {}, {})


def per_unit_scores(
    posterior: object, columns: list[str], classes: list[str], scale: Tensor, label_scale: float
) -> dict[str, float]:
    """``per_unit`` and ``per_unit_sd`` of the coefficients of standardised columns, by column
    name."""
    places = parameter_columns(posterior, columns, classes)
    if not isinstance(posterior, HoldsDraws) or not places or len(places) > MOST_SCORED:
        return {}
    out: dict[str, float] = {}
    for name, value in effect_scores(posterior, _units(places, scale, label_scale)).items():
        score, _, parameter = name.partition("/")
        out[f"{score}/{parameter_label(parameter, columns, classes)}"] = value
    return out


def effect_table(
    posterior: object, columns: list[str], classes: list[str], scale: Tensor, label_scale: float
) -> dict[str, pd.DataFrame]:
    """A row for each parameter, with coefficients named by column: mean, sd and central 95 %
    interval in the model's units (standard deviations of standardised columns and labels), and the
    same per unit of the column in units of the label."""
    places = parameter_columns(posterior, columns, classes)
    if not isinstance(posterior, HoldsDraws) or not places:
        return {}
    table = coefficient_table(posterior, _units(places, scale, label_scale))
    table["name"] = [
        parameter_label(name, columns, classes) if name in places else name
        for name in table["name"]
    ]
    return {
        "coefficients": table.drop(
            columns=["inclusion", *(str(c) for c in table if str(c).startswith("long_run"))]
        )
    }
