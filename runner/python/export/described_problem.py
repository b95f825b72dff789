"""Problems as JSON and tensors: the content that a model and its posterior require, with training
rows or with noise of the same shape in their place."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from components.contracts.problems import Batch, Counts, Rows
from components.contracts.roles import Problem
from components.contracts.sequences import FutureCovariates
from components.problems.input_columns import InputColumn, InputColumns, TimeColumn
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.series.forecasting import Classes, Forecasting
from components.series.sequence import Sequence
from components.topics.corpus import Corpus
from runner.execution.storage.packing import Tensors

MOST_VALUES = 2**28  # largest tensor of noise, 2 GiB in float64
TEST_ROWS = 2  # size of a test set
UNIT_SD = (-math.sqrt(3.0), math.sqrt(3.0))  # range of uniform noise with standard deviation 1
ONES = (1, 2)  # half-open range of integers
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float64, torch.float32, torch.int64, torch.int32, torch.bool)
}


def describe_rows(problem: Any, name: str) -> dict[str, Any] | None:
    """JSON of the rows ``name`` (train or test) of a problem, without their values.

    None if noise cannot replace the rows.
    """
    rows = getattr(problem, name)
    n = rows.n_rows if name == "train" else min(rows.n_rows, TEST_ROWS)
    ranges: dict[str, tuple[float, float]] = {}  # half-open ranges of values by field
    if isinstance(problem, Supervised) and isinstance(rows, Batch):
        sizes = {"binary": 2, "tokens": problem.vocabulary}
        size = sizes.get(problem.domain)
        ranges["x"] = (0, size) if size else problem.bounds or UNIT_SD
        ranges["y"] = UNIT_SD if problem.target == "real" else (0, problem.n_classes)
        ranges["mask"] = ONES
    elif isinstance(problem, Corpus):  # each document consists of word 0
        ranges = {"words": (0, 1), "counts": ONES, "lengths": ONES}
    elif isinstance(problem, Unlabelled) and isinstance(rows, Rows):
        ranges["x"] = (0, 2) if problem.values in ("binary", "count") else UNIT_SD
    if not ranges:
        return None
    fields = {
        field: describe_noise(getattr(rows, field), n, *ends) for field, ends in ranges.items()
    }
    return {"class": type(rows).__name__, "fields": {**fields, "scale": 1.0}}


def describe_noise(like: Tensor, n: int, low: float, high: float) -> dict[str, Any]:
    """JSON of n rows of noise in the range [low, high)."""
    size = {"shape": [n, *like.shape[1:]], "dtype": str(like.dtype).removeprefix("torch.")}
    return {"noise": [low, high], **size}


def generate(noise: dict[str, Any], device: torch.device) -> Tensor:
    """Generate a tensor from a description of noise, identical in every process.

    Raises:
        ValueError, KeyError, TypeError: the description is damaged or requests too many numbers.
    """
    shape = [int(size) for size in noise["shape"]]
    if min(shape, default=0) < 0 or math.prod(shape) > MOST_VALUES:
        raise ValueError(f"invalid shape {shape}, or more than {MOST_VALUES:,} numbers")
    dtype = DTYPES[noise["dtype"]]
    low, high = map(float, noise["noise"])
    unit = torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = low + (high - low) * unit
    return (values if dtype.is_floating_point else values.floor()).to(device, dtype)


PROBLEMS = (Supervised, SupervisedReplicates, Unlabelled, Corpus, Sequence, Forecasting)
# Allowed classes by name; a subclass is stored as its nearest base class among them.
CLASSES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        *PROBLEMS,
        *(Batch, Rows, Counts),
        *(InputColumns, InputColumn, TimeColumn, FutureCovariates, Classes),
    )
}
# Fields for results and figures, not needed for predictions.
LEFT_OUT = {"figures", "attacker", "truth", "evidence", "test_classes", "budget", "clean", "rng"}
LEFT_OUT |= {"states", "means", "redraw", "suspect", "about", "scoring"}
# Fields with sizes; a model has weights for each class and each symbol.
LEARNED_SIZES = ("n_classes", "vocabulary")
SIZES = (*LEARNED_SIZES, "batch_size", "evaluation_chunk", "replicates")
MAX_SIZE = 2**31
SCALARS = (type(None), bool, int, float, str)


def pack_problem(value: Any, tensors: Tensors, with_rows: bool, path: str = "problem") -> Any:
    """JSON of a problem or a part of it; its tensors are added to ``tensors``.

    Values without a JSON form (functions, simulated systems) become null.

    Args:
        value: the problem, or a part of it.
        tensors: receives the tensors by path.
        with_rows: False stores noise of the same shape in place of training rows.  A series is
            always stored, because forecasts continue it.
        path: path of the part in the problem.
    """
    if isinstance(value, Tensor):
        tensors[path] = value.detach().cpu().contiguous().clone()
        return {"tensor": path}
    if isinstance(value, SCALARS):
        return value
    if (fields := _fields(value)) is not None:
        name, names = fields
        packed = {
            field: _pack_field(value, field, tensors, with_rows, path)
            for field in names
            if field not in LEFT_OUT
        }
        return {"class": name, "fields": packed}
    if isinstance(value, list | tuple):
        parts = [pack_problem(v, tensors, with_rows, f"{path}.{i}") for i, v in enumerate(value)]
        return parts if isinstance(value, list) else {"tuple": parts}
    return None


def _pack_field(owner: Any, field: str, tensors: Tensors, with_rows: bool, path: str) -> Any:
    value = getattr(owner, field)
    if field == "test" or (field == "train" and not with_rows):
        described = describe_rows(owner, field)
        if described is not None:
            return described
    if field == "future":
        return describe_noise(value, len(value), math.nan, math.nan)
    return pack_problem(value, tensors, with_rows, f"{path}.{field}")


def _fields(value: object) -> tuple[str, list[str]] | None:
    """Name of the stored class of a value, and its fields; None if the class is not allowed."""
    for cls in type(value).__mro__:
        if CLASSES.get(cls.__name__) is cls:
            if dataclasses.is_dataclass(cls):
                return cls.__name__, [field.name for field in dataclasses.fields(cls) if field.init]
            return cls.__name__, list(vars(cls)["_fields"])
    return None


def unpack_problem(packed: Any, tensors: Tensors, device: torch.device) -> Any:
    """Inverse of ``pack_problem``.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: the content is damaged or foreign.
    """
    if isinstance(packed, SCALARS):
        return packed
    if isinstance(packed, list):
        return [unpack_problem(part, tensors, device) for part in packed]
    if "class" in packed:
        if (name := packed["class"]) not in CLASSES:
            raise ValueError(f"unknown part {name!r} of a problem")
        cls = CLASSES[name]
        fields = {
            name: unpack_problem(part, tensors, device) for name, part in packed["fields"].items()
        }
        _check_fields(fields, sum(tensor.numel() for tensor in tensors.values()))
        return cls(**fields | _required(cls, fields))
    if "noise" in packed:
        return generate(packed, device)
    if "tensor" in packed:
        name = packed["tensor"]
        is_scaler = ".columns." in name  # rows are converted on the CPU
        return tensors[name] if is_scaler else tensors[name].to(device)
    return tuple(unpack_problem(packed["tuple"], tensors, device))


def _check_fields(fields: Mapping[str, Any], stored: int) -> None:
    """Check the sizes and names of a part of a problem; ``stored`` numbers are in the file.

    Raises:
        ValueError: sizes are out of range, or names are repeated or missing.
    """
    for name in SIZES:
        size = fields.get(name)
        most = max(stored, 2) if name in LEARNED_SIZES else MAX_SIZE
        if isinstance(size, int) and not 1 <= size <= most:
            raise ValueError(f"{name} is {size}, but must be 1 to {most:,} in this file")
    classes = fields.get("class_names") or []
    if classes and len(classes) != fields["n_classes"]:
        raise ValueError(f"{len(classes)} class_names for {fields['n_classes']} classes")
    columns = fields.get("columns")
    headings = [column.name for column in columns] if isinstance(columns, tuple) else []
    for names in (classes, headings, fields.get("task_names") or []):
        if len(set(names)) < len(names):
            raise ValueError(f"names are repeated: {', '.join(map(str, names)):.60}")


def _required(cls: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """None for required fields missing from a file; a generator for a corpus."""
    if not dataclasses.is_dataclass(cls):
        return {}
    missing = [
        field.name
        for field in dataclasses.fields(cls)
        if field.init
        and field.name not in given
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    return {name: torch.Generator().manual_seed(0) if name == "rng" else None for name in missing}


def check_problem(problem: object) -> Problem:
    """Return the value if it is a problem.

    Raises:
        ValueError: the value is another part."""
    if not isinstance(problem, PROBLEMS):
        raise ValueError(f"a {type(problem).__name__} is not a problem")
    return problem
