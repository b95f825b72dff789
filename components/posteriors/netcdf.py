"""Groups of an InferenceData written as netCDF by h5netcdf.

xarray, which reads them, takes longer to import than a small run.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from h5netcdf import Group

LIBRARY = "bayes-runner"
SAMPLE_DIMS = ("chain", "draw")


def write_groups(
    path: Path,
    values: Mapping[str, Mapping[str, np.ndarray]],
    dims: Mapping[str, Sequence[str]],
    coords: Mapping[str, Any],
) -> None:
    """Write groups of variables [C, N, …] in the format of ArviZ and xarray.

    Args:
        path: file, which is replaced.
        values: arrays by group and variable.
        dims: dimensions of a variable after chain and draw; default: ``<variable>_dim_<i>``.
        coords: coordinates of a dimension; default: 0, 1, …
    """
    from h5netcdf import File

    with File(path, "w") as file:
        file.attrs["inference_library"] = LIBRARY
        for name, variables in values.items():
            group = file.create_group(name)
            group.attrs.update(_origin())
            for variable, array in variables.items():
                rest = dims.get(variable) or [
                    f"{variable}_dim_{i}" for i in range(array.ndim - len(SAMPLE_DIMS))
                ]
                names = (*SAMPLE_DIMS, *rest)
                for dim, size in zip(names, array.shape, strict=True):
                    _create_dimension(group, dim, size, coords)
                _create_variable(group, variable, names, array)


def _origin() -> dict[str, str]:
    """Attributes of a group by InferenceData's convention."""
    try:
        number = version(LIBRARY)
    except PackageNotFoundError:
        number = "unknown"
    return {
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(),
        "creation_library": LIBRARY,
        "creation_library_version": number,
        "creation_library_language": "Python",
    }


def _create_dimension(group: Group, name: str, size: int, coords: Mapping[str, Any]) -> None:
    """Create a dimension with its coordinates, unless the group has it."""
    if name not in group.dimensions:
        group.dimensions[name] = size
        _create_variable(group, name, (name,), np.asarray(coords.get(name, np.arange(size))))


def _create_variable(group: Group, name: str, dims: Sequence[str], array: np.ndarray) -> None:
    """Create a variable; netCDF has no booleans, and strings of any length are objects."""
    from h5py import string_dtype

    if array.dtype.kind in "UO":
        group.create_variable(name, tuple(dims), string_dtype(), data=array.astype(object))
        return
    is_boolean = array.dtype.kind == "b"
    data = array.astype(np.int8) if is_boolean else array
    variable = group.create_variable(name, tuple(dims), data.dtype, data=data)
    if is_boolean:
        variable.attrs["dtype"] = "bool"  # xarray reads these as booleans
