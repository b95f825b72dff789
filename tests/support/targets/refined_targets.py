"""Normalised log densities [S, B, 2] -> [S, B], and the inference that follows them."""

from __future__ import annotations

import math

import torch
from support.runs.configured import F64, component, defaults
from torch import Tensor

from runner.compose.build import build_component
from runner.compose.parts import expand_component
from runner.execution.rng import Streams

MEAN = torch.tensor([0.5, -1.0], dtype=F64)
PRECISION = torch.tensor([[2.0, 0.6], [0.6, 1.5]], dtype=F64)


def gaussian(z: Tensor) -> Tensor:
    """log N(z | μ, Λ⁻¹)."""
    centred = z - MEAN
    return (
        -0.5 * ((centred @ PRECISION) * centred).sum(-1)
        + 0.5 * torch.logdet(PRECISION)
        - math.log(2 * math.pi)
    )


def slope_of(z: Tensor) -> Tensor:
    """−Λ (z − μ)."""
    return -(z - MEAN) @ PRECISION


def banana(z: Tensor) -> Tensor:
    """z_1 ~ N(0, 1), z_2 ~ N(½ z_1², 1)."""
    bent = z[..., 1] - 0.5 * z[..., 0].square()
    return -0.5 * (z[..., 0].square() + bent.square()) - math.log(2 * math.pi)


def composed(name, **changes):
    """An inference with its YAML's defaults but for some keys, and the components that these
    name."""
    return build_component(
        "inference",
        expand_component("inference", defaults("inference", name) | changes, "inference"),
        "inference",
    )


def vis(**changes):
    return composed("vis", **changes)


def trained(inference, model, problem, steps, seed=0):
    """State, last info and streams after so many steps."""
    rng = Streams(seed)
    state = inference.init(model.build(problem, rng), problem, rng)
    info = {}
    for _, batch in problem.batches(inference.requires.batch_kind, rng, 0, steps):
        state, info = inference.step(state, batch, rng)
    return state, info, rng


TARGET = component("model", "target_density")
