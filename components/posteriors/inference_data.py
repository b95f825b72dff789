"""Draws as ArviZ's InferenceData (an xarray DataTree), for use with other tools."""

from __future__ import annotations

import itertools
import re
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from components.contracts.posteriors import HoldsDraws
from components.errors import warn_incomplete
from components.posteriors.netcdf import write_groups

if TYPE_CHECKING:
    from xarray import DataTree

FILE = "posterior.nc"
UNCONSTRAINED = "unconstrained_posterior"  # group of θ if parameters are functions of it
MOST_NUMBERS = 10_000_000  # maximum numbers in a file, 80 MB in float64; more draws are thinned
MOST_VARIABLES = 1000  # maximum variables in a file, because their cost grows quickly
FEWEST_DRAWS = 4  # per chain, needed for ArviZ's ESS
_INDEXED = re.compile(r"^(.+)\[(\d+(?:, ?\d+)*)\]$")  # theta[1], w[0,2]
# name -> ({dimension: its coordinates}, columns in order)
Variables = dict[str, tuple[dict[str, list[Any]], list[int]]]


def group_variables(names: list[str], size: int) -> Variables:
    """Variables formed from P' named parameters.

    ``theta[1]``, ``theta[2]``, … form one vector, ``w[0,0]``, … one matrix if its grid is complete;
    others are scalars.  Unnamed parameters form one vector, ``theta``; so do parameters that would
    need more than ``MOST_VARIABLES`` variables, with their names as coordinate ``parameter``."""
    if not names:
        return {"theta": ({"theta_dim_0": list(range(size))}, list(range(size)))}
    groups: dict[str, dict[tuple[int, ...], int]] = {}
    for column, name in enumerate(names):
        match = _INDEXED.match(name)
        base, index = (
            (match[1], tuple(int(i) for i in match[2].split(","))) if match else (name, ())
        )
        groups.setdefault(base, {})[index] = column
    out: Variables = {}
    for base, cells in groups.items():
        # indices of unequal length give too few axes
        axes = [sorted(set(axis)) for axis in zip(*cells, strict=False)]
        grid = list(itertools.product(*axes))
        if set(grid) == set(cells):
            dims = {f"{base}_dim_{d}": axis for d, axis in enumerate(axes)}
            out[base] = (dims, [cells[index] for index in grid])
        else:
            out |= {names[column]: ({}, [column]) for column in cells.values()}
    if len(out) > MOST_VARIABLES:
        return {"theta": ({"parameter": names}, list(range(size)))}
    # a slash would create a group in the file
    return {base.replace("/", "_"): content for base, content in out.items()}


@dataclass
class Groups:
    """Contents of an InferenceData."""

    values: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)  # by group and variable
    # dimensions of a variable, after chain and draw
    dims: dict[str, list[str]] = field(default_factory=dict)
    coords: dict[str, Any] = field(default_factory=dict)  # coordinates of a dimension

    def tree(self) -> DataTree:
        # imported here because it takes a second and is used only at the end of a run
        from arviz_base import from_dict

        with warnings.catch_warnings():
            # many chains are common here
            warnings.filterwarnings("ignore", message="Found chain dimension to be longer")
            attributes = {"/": {"inference_library": "bayes-runner"}}
            return from_dict(self.values, coords=self.coords, dims=self.dims, attrs=attributes)


def parameter_groups(draws: HoldsDraws, index: np.ndarray | None = None) -> Groups:
    """Groups ``posterior`` (the named parameters) and ``sample_stats`` (the sampler's statistics of
    each draw).

    ``index`` selects draws of each chain, by default all.  Log weights, if any, are ``log_weight``
    among the statistics.  Data are omitted because the run's config defines them
    (``evaluation.inference_groups`` includes them)."""
    index = np.arange(draws.n_draws) if index is None else index
    if len(index) < draws.n_draws:
        part = draws.draws[:, index]
        # [C, N, P']
        values = to_numpy(draws.constrain(part.flatten(0, 1)).unflatten(0, part.shape[:2]))
    else:
        values = to_numpy(draws.values)
    variables = group_variables(draws.names, values.shape[-1])
    posterior = {}
    dims = {}
    coords: dict[str, Any] = {"draw": index}
    for name, (axes, columns) in variables.items():
        posterior[name] = values[:, :, columns].reshape(
            *values.shape[:2], *(len(axis) for axis in axes.values())
        )
        dims[name] = list(axes)
        coords |= axes
    groups = {"posterior": posterior}
    theta = to_numpy(draws.draws)[:, index]
    if theta.shape != values.shape or not np.array_equal(theta, values):
        groups[UNCONSTRAINED] = {UNCONSTRAINED: theta}  # parameters may be called theta
    stats = {name: to_numpy(value)[:, index] for name, value in draws.stats.items()}
    if draws.log_weights is not None:
        stats["log_weight"] = to_numpy(draws.log_weights)[:, index]
    if stats:
        groups["sample_stats"] = stats
    return Groups(groups, dims, coords)


def to_numpy(value: Tensor) -> np.ndarray:
    return value.detach().cpu().numpy()


def write(draws: HoldsDraws, folder: Path) -> list[Path]:
    """Write ``posterior.nc`` to a folder, or nothing without draws.  Returns the written paths.

    The file holds at most ``MOST_NUMBERS`` numbers: chains are thinned evenly until they fit, and
    nothing is written if fewer than four draws of each would be left (P' × chains > 2.5 million); a
    warning reports both."""
    if draws.n_draws == 0:
        return []
    size = draws.constrain(draws.start[:1]).shape[-1]
    most = MOST_NUMBERS // (draws.n_chains * size)  # number of draws per chain that fit
    every = -(-draws.n_draws // max(most, 1))
    if every > 1 and draws.n_draws // every < FEWEST_DRAWS:
        warn_incomplete(
            f"{FILE} is not written: {draws.n_chains} chains of {size:,} parameters exceed the "
            f"limit of 80 MB"
        )
        return []
    index = np.arange(draws.n_draws)[every - 1 :: every]
    if every > 1:
        warn_incomplete(
            f"{FILE} holds every {every}th draw, {len(index)} of {draws.n_draws}, because all need "
            f"more than 80 MB"
        )

    path = folder / FILE
    temp_path = folder / f".{FILE}.new"
    groups = parameter_groups(draws, index)
    write_groups(temp_path, groups.values, groups.dims, groups.coords)
    temp_path.replace(path)  # written completely or not at all
    return [path]
