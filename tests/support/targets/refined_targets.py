"""Normalised log densities [S, B, 2] -> [S, B], and their training."""

from __future__ import annotations

import math
from functools import partial

import torch
from support.runs.configured import component, compose_component, double
from support.small.small_problems import advance, train
from torch import Tensor

MEAN = double([0.5, -1.0])
PRECISION = double([[2.0, 0.6], [0.6, 1.5]])


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


vis = partial(compose_component, "inference", "vis")


def train_refined(inference, model, problem, steps):
    """State, last info and streams after a number of steps."""
    state, rng = train(inference, model, problem, 0, 0)
    state, info = advance(inference, state, problem, rng, 0, steps)
    return state, info or {}, rng


TARGET = component("model", "target_density")
