"""Digest of the numbers in a problem; it shows if two runs used the same data."""

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
    """SHA-256 over every tensor of a problem, with its place, shape and type (16 hexadecimal
    digits).

    Data of the first replicate, after standardisation, a split and contamination: what was learnt
    from and tested on.  A density and a game are functions, which have none: the settings of their
    dataset say what they are."""
    if isinstance(problem, SupervisedReplicates):
        problem = problem.splits[0]
    digest = hashlib.sha256(problem.name.encode())
    for place, tensor in tensors(problem, ""):
        digest.update(f"{place} {tuple(tensor.shape)} {tensor.dtype}".encode())
        # a copy: an expanded tensor of one element counts as contiguous and cannot be viewed
        values = tensor.detach().cpu().clone(memory_format=torch.contiguous_format).flatten()
        raw: Any = values.view(torch.uint8).numpy()  # a buffer, which stubs deny
        digest.update(raw)
    if problem.kind in FUNCTIONS:
        digest.update(json.dumps(dataset, sort_keys=True).encode())
    return digest.hexdigest()[:16]


def tensors(holder: object, place: str) -> Iterator[tuple[str, Tensor]]:
    """The tensors in a value, in its fields, and in what it holds, with where they are."""
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
