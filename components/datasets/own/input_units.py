"""Units, bounds and shape of the inputs of a user's table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import torch
from pydantic import AfterValidator, BeforeValidator
from torch import Tensor

from components.datasets.own.columns import Array
from components.datasets.own.text_table import TextTable
from components.datasets.tables.raw_units import (
    Rows,
    check_squares,
    column_scales,
    standardised_inputs,
)
from components.errors import ConfigMismatchError

MOST_NAMED = 16  # columns listed by name


def _to_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _check_single_bounds(value: object) -> object:
    if isinstance(value, list | tuple) and any(isinstance(entry, list | tuple) for entry in value):
        raise ValueError(
            "bounds: must be one minimum and one maximum for all columns, e.g. [0, 255]; if "
            "columns have different ranges, scale each to [0, 1] in the file, or leave bounds out "
            "and set dataset.standardise=true (attack sizes are then in standard deviations of "
            "each column)"
        )
    return _to_tuple(value)


def _check_bounds_order(bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = bounds
    if not (np.isfinite(bounds).all() and low < high):
        raise ValueError(
            f"bounds: must be a smaller and a larger number, e.g. [0, 255], not [{low:g}, {high:g}]"
        )
    return bounds


def _check_image_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise ValueError(
            f"image_shape: must be [height, width] or [colours, height, width], not {list(shape)}"
        )
    return shape


Bounds = Annotated[
    tuple[float, float], BeforeValidator(_check_single_bounds), AfterValidator(_check_bounds_order)
]
ImageShape = Annotated[
    tuple[int, ...], BeforeValidator(_to_tuple), AfterValidator(_check_image_shape)
]


def describe_columns(kinds: Mapping[str, str]) -> str:
    """Description of each column's interpretation.

    Many columns of one kind are counted, with the first one named.
    """
    if len(kinds) <= MOST_NAMED:
        return "; ".join(f"{name}: {kind}" for name, kind in kinds.items())
    of_kind = {
        kind: [name for name, other in kinds.items() if other == kind] for kind in kinds.values()
    }
    return "; ".join(
        f"{names[0]}: {kind}"
        if len(names) == 1
        else f"{names[0]}, … {names[-1]} ({len(names)}): {kind}"
        for kind, names in of_kind.items()
    )


def convert_inputs(
    table: TextTable,
    columns: Mapping[str, Array],
    kept: Rows,
    standardise: bool,
    bounds: tuple[float, float] | None,
    image_shape: tuple[int, ...] | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs [N, D] in the requested units, the column values at input 0 [D], and the column units
    per unit of input [D].

    Args:
        columns: numbers [N, k] of each column, k ≥ 0.
        kept: training rows, used for standardisation.

    Raises:
        ConfigMismatchError: a cell lies outside the bounds, or the number of inputs differs from
            the pixels of an image."""
    x = np.concatenate(list(columns.values()), 1)
    if bounds is not None:
        for name, values in columns.items():
            outside = (values < bounds[0]) | (values > bounds[1])
            if outside.any():
                row, place = np.argwhere(outside)[0]
                raise ConfigMismatchError(
                    f"{table.where(int(row))}: {name} is {values[row, place]:g}, outside dataset.bounds="
                    f"[{bounds[0]:g}, {bounds[1]:g}]; widen the bounds, or correct the cell"
                )
    if image_shape is not None and x.shape[1] != (pixels := int(np.prod(image_shape))):
        raise ConfigMismatchError(
            f"dataset.image_shape={list(image_shape)}: has {pixels} pixels, but {table.file} has "
            f"{x.shape[1]} inputs; list the pixel columns in dataset.inputs"
        )
    inputs = torch.from_numpy(x)
    if not standardise:
        return inputs, inputs.new_zeros(inputs.shape[1]), inputs.new_ones(inputs.shape[1])
    kept_inputs = inputs[kept]
    if bool((gaps := inputs.isnan()).any()):
        mean = kept_inputs.nanmean(0)
        check_squares(torch.where(gaps, mean, inputs)[kept], list(columns))
        scale = (kept_inputs - mean).square().nanmean(0).sqrt()
        scale = torch.where(scale > 1e-12 * mean.abs(), scale, 1.0)
        return (inputs - mean) / scale, mean, scale
    return standardised_inputs(inputs, kept), kept_inputs.mean(0), column_scales(kept_inputs)
