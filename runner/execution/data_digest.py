"""Digest of the numbers in a problem, to compare the data of runs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from components.contracts.roles import Problem
from components.problems.replicates.side_by_side import SupervisedReplicates

FUNCTIONS = ("density", "game")


def data_digest(problem: Problem, dataset: dict[str, Any]) -> str:
    """SHA-256 of all tensors of a problem with their paths, shapes and types (16 hex digits).

    Covers the training and test data of the first replicate, after standardisation, splitting and
    contamination.  Densities and games are functions without data: the settings of their dataset
    identify them."""
    if isinstance(problem, SupervisedReplicates):
        problem = problem.splits[0]
    digest = hashlib.sha256(problem.name.encode())
    for place, tensor in tensors(problem, ""):
        digest.update(f"{place} {tuple(tensor.shape)} {tensor.dtype}".encode())
        # copied, because an expanded tensor of one element counts as contiguous but has no view
        values = tensor.detach().cpu().clone(memory_format=torch.contiguous_format).flatten()
        raw: Any = values.view(
            torch.uint8
        ).numpy()  # Any because type stubs lack the buffer protocol
        digest.update(raw)
    if problem.kind in FUNCTIONS:
        digest.update(json.dumps(dataset, sort_keys=True).encode())
    return digest.hexdigest()[:16]


def tensors(holder: object, place: str) -> Iterator[tuple[str, Tensor]]:
    """Tensors in a value, its fields and items, with their paths."""
    if isinstance(holder, Tensor):
        if holder.numel():
            yield place, holder
    elif dataclasses.is_dataclass(holder) and not isinstance(holder, type):
        for field in dataclasses.fields(holder):
            if not field.name.startswith("_"):
                yield from tensors(vars(holder).get(field.name), f"{place}.{field.name}")
    elif isinstance(holder, dict):
        for name, value in holder.items():
            yield from tensors(value, f"{place}.{name}")
    elif isinstance(holder, list | tuple):
        for i, value in enumerate(holder):
            yield from tensors(value, f"{place}.{i}")
