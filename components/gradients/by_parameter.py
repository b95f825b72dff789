"""Gradients by parameter of a module: conversion to and from one vector, and functions called with
other parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic

import torch
from torch import Tensor, nn
from typing_extensions import TypeVar

from components.contracts.capabilities.modules import Trainable
from components.contracts.problems import RowBatch
from components.contracts.roles import Gradient
from components.contracts.streams import Rng

# for each of the module's parameters in order; None if the bound does not depend on it
Gradients = list[Tensor | None]
Terms = dict[str, Tensor]  # terms of the bound, and further quantities of an estimator
M = TypeVar("M")
S = TypeVar("S")
Estimate = tuple[Gradients, Terms, S]  # with the next state of the estimator


class StatelessGradient(Gradient[M, RowBatch, None], Generic[M]):
    """Base of estimators without a learned state."""

    def init(self, module: M, rng: Rng) -> None:
        return None


def flat(gradients: Sequence[Tensor | None], parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate to one vector [P]; 0 for parameters without a gradient."""
    pairs = zip(gradients, parameters, strict=True)
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in pairs])


def split(vector: Tensor, parameters: list[nn.Parameter]) -> list[Tensor]:
    """Split [P] to the shapes of the parameters."""
    return [
        part.view_as(p)
        for part, p in zip(vector.split([p.numel() for p in parameters]), parameters, strict=True)
    ]


def as_gradients(vector: Tensor, raw: Gradients, module: Trainable) -> Gradients:
    """Split a gradient [P] by parameter; None where ``raw`` is None."""
    pieces = split(vector, list(module.parameters()))
    return [None if g is None else piece for g, piece in zip(raw, pieces, strict=True)]


@contextmanager
def at_parameters(parameters: Sequence[Tensor], values: Sequence[Tensor]) -> Iterator[None]:
    """Replace a module's parameters by values inside the context."""
    originals = [p.data for p in parameters]
    try:
        for p, value in zip(parameters, values, strict=True):
            p.data = value
        yield
    finally:
        for p, value in zip(parameters, originals, strict=True):
            p.data = value


class Called(nn.Module):
    """A function of a module's parameters wrapped as a module, for ``functional_call`` with other
    parameters."""

    def __init__(self, module: nn.Module, function: Callable[..., Any]):
        super().__init__()
        self.module = module
        self.function = function

    def forward(self, *given: Any) -> Any:
        return self.function(*given)
