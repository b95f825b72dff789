"""Noise of the shape of rows, in the place of training and test rows that a posterior does not
need: a file then holds their shapes and not their values."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from components.contracts.problems import Batch, Rows, Words
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.topics.corpus import Corpus

MOST_VALUES = 2**28  # of one tensor of noise: 2 GiB in float64
TEST_ROWS = 2  # of a test set
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float64, torch.float32, torch.int64, torch.int32, torch.bool)
}


def describe_rows(problem: Any, name: str) -> Any:
    """JSON of the rows ``name`` (train or test) of a problem, without their values.

    None: the rows have no stand-in.
    """
    rows = getattr(problem, name)
    n = rows.n_rows if name == "train" else min(rows.n_rows, TEST_ROWS)
    if isinstance(problem, Supervised) and isinstance(rows, Batch):
        return _part("Batch", _batch_noise(problem, rows, n))
    if isinstance(problem, Corpus):
        single = [_noise("below", (n,), torch.int64, end=end) for end in (1, 2)]
        one = {**single[1], "start": 1}  # a word 0 in each document
        return _part("Counts", {"words": single[0], "counts": one, "lengths": one})
    if isinstance(problem, Unlabelled) and isinstance(rows, Rows):
        ends = {"binary": 2, "categorical": problem.n_symbols, "count": 2}
        return _part("Rows", {"x": _values(rows.x, n, ends.get(problem.values))})
    if isinstance(problem, Unlabelled) and isinstance(rows, Words):
        words = _noise("below", (n,), torch.int64, end=problem.n_symbols or 1)
        one = _noise("below", (n,), torch.int64, end=2) | {"start": 1}
        return _part("Words", {"words": words, "lengths": one})
    return None


def _part(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"class": name, "fields": {**fields, "scale": {"float": (1.0).hex()}}}


def _batch_noise(problem: Supervised, rows: Batch, n: int) -> dict[str, Any]:
    ends = {"binary": 2, "tokens": problem.vocabulary, "continuous": None}
    x = _values(rows.x, n, ends[problem.domain], problem.bounds)
    y = _values(rows.y, n, None if problem.target == "real" else problem.n_classes)
    mask = _noise("below", (n, *rows.mask.shape[1:]), torch.bool, end=2) | {"start": 1}
    return {"x": x, "y": y, "mask": mask}


def _values(
    values: Tensor, n: int, end: int | None, bounds: tuple[float, float] | None = None
) -> dict[str, Any]:
    shape = (n, *values.shape[1:])
    if end is not None:
        return _noise("below", shape, values.dtype, end=end)
    if bounds is not None:
        low, high = bounds
        return _noise("uniform", shape, values.dtype) | {"low": low, "high": high}
    return _noise("normal", shape, values.dtype)


def _noise(kind: str, shape: tuple[int, ...], dtype: torch.dtype, **more: int) -> dict[str, Any]:
    return {"noise": kind, "shape": [*shape], "dtype": str(dtype).removeprefix("torch."), **more}


def generate(noise: dict[str, Any], device: torch.device) -> Tensor:
    """The tensor that a description of noise stands for, the same in every process.

    Raises:
        ValueError, KeyError, TypeError: it is damaged, or asks for too many numbers.
    """
    shape = [int(size) for size in noise["shape"]]
    if min(shape, default=0) < 0 or math.prod(shape) > MOST_VALUES:
        raise ValueError(f"rows of {shape} are no rows, or more than {MOST_VALUES:,} numbers")
    generator = torch.Generator().manual_seed(0)
    kind = noise["noise"]
    dtype = DTYPES[noise["dtype"]]
    if kind == "below":
        start, end = int(noise.get("start", 0)), int(noise["end"])
        values = torch.randint(start, max(end, start + 1), shape, generator=generator)
    elif kind == "uniform":
        unit = torch.rand(shape, generator=generator, dtype=torch.float64)
        low, high = float(noise["low"]), float(noise["high"])
        values = low + (high - low) * unit
    elif kind == "normal":
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
    elif kind == "missing":
        values = torch.full(shape, math.nan, dtype=torch.float64)
    else:
        raise ValueError(f"no noise is {kind!r:.60}")
    return values.to(device, dtype)
