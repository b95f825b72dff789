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
UNIT_SD = (-math.sqrt(3.0), math.sqrt(3.0))  # range of uniform noise of standard deviation 1
ONES = (1, 2)  # range of whole numbers without its end
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float64, torch.float32, torch.int64, torch.int32, torch.bool)
}


def describe_rows(problem: Any, name: str) -> dict[str, Any] | None:
    """JSON of the rows ``name`` (train or test) of a problem, without their values.

    None: the rows have no stand-in.
    """
    rows = getattr(problem, name)
    n = rows.n_rows if name == "train" else min(rows.n_rows, TEST_ROWS)
    ranges: dict[str, tuple[float, float]] = {}  # of the values by field; the end is left out
    if isinstance(problem, Supervised) and isinstance(rows, Batch):
        sizes = {"binary": 2, "tokens": problem.vocabulary}
        size = sizes.get(problem.domain)
        ranges["x"] = (0, size) if size else problem.bounds or UNIT_SD
        ranges["y"] = UNIT_SD if problem.target == "real" else (0, problem.n_classes)
        ranges["mask"] = ONES
    elif isinstance(problem, Corpus):  # a word 0 in each document
        ranges = {"words": (0, 1), "counts": ONES, "lengths": ONES}
    elif isinstance(problem, Unlabelled) and isinstance(rows, Rows):
        sizes = {"binary": 2, "categorical": problem.n_symbols, "count": 2}
        size = sizes.get(problem.values)
        ranges["x"] = (0, size) if size else UNIT_SD
    elif isinstance(problem, Unlabelled) and isinstance(rows, Words):
        ranges = {"words": (0, problem.n_symbols or 1), "lengths": ONES}
    if not ranges:
        return None
    fields = {
        field: describe_noise(getattr(rows, field), n, *ends) for field, ends in ranges.items()
    }
    return {"class": type(rows).__name__, "fields": {**fields, "scale": 1.0}}


def describe_noise(like: Tensor, n: int, low: float, high: float) -> dict[str, Any]:
    """JSON of n rows of noise between two ends."""
    size = {"shape": [n, *like.shape[1:]], "dtype": str(like.dtype).removeprefix("torch.")}
    return {"noise": [low, high], **size}


def generate(noise: dict[str, Any], device: torch.device) -> Tensor:
    """The tensor that a description of noise stands for, the same in every process.

    Raises:
        ValueError, KeyError, TypeError: it is damaged, or asks for too many numbers.
    """
    shape = [int(size) for size in noise["shape"]]
    if min(shape, default=0) < 0 or math.prod(shape) > MOST_VALUES:
        raise ValueError(f"rows of {shape} are no rows, or more than {MOST_VALUES:,} numbers")
    dtype = DTYPES[noise["dtype"]]
    low, high = map(float, noise["noise"])
    unit = torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = low + (high - low) * unit
    return (values if dtype.is_floating_point else values.floor()).to(device, dtype)
