"""Outputs of classifiers: conversion of probabilities and log probabilities to logits, and
detection of their kind."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

Outputs = Literal["logits", "probabilities", "log_probabilities"]
NonLogitKind = Literal["sums to one", "in [0, 1]", "below zero"]
CLOSE = 1e-4  # tolerance for the sum of probabilities


def to_logits(values: Tensor, outputs: Outputs) -> Tensor:
    """Logits f with softmax(f)_c = p_c.

    For several classes f_c = log p_c; for one output and a binary label f = (0, log p − log(1 −
    p)).  Probabilities are clamped to [smallest normal number, 1 − ε/2], so that logits and
    gradients are finite; a logit of −∞ is replaced by the largest logit of its row plus the
    logarithm of the smallest normal number.

    Args:
        values: [..., C], or [..., 1]: p, log p or log odds of the second of two classes.

    Returns:
        f [..., C], C ≥ 2."""
    tiny = torch.finfo(values.dtype).tiny
    below_one = torch.finfo(values.dtype).eps / 2
    if values.shape[-1] > 1:
        if outputs == "probabilities":
            return values.clamp_min(tiny).log()
        impossible = values.isneginf()
        if not bool(impossible.any()):
            return values
        return torch.where(
            impossible, values.detach().amax(-1, keepdim=True) + math.log(tiny), values
        )
    if outputs == "probabilities":
        values = values.clamp_min(tiny).log() - (1 - values).clamp_min(below_one).log()
    elif outputs == "log_probabilities":
        values = values.clamp_min(math.log(tiny))
        values = values - (-values.expm1()).clamp_min(below_one).log()
    return torch.cat([torch.zeros_like(values), values], -1)


def guess_output_kind(values: Tensor) -> NonLogitKind | None:
    """Guess the kind of the outputs for many inputs, unless they look like logits.

    None if they look like logits, or there are too few to decide.

    Args:
        values: [..., C], or [..., 1] of one output for a binary label.
    """
    if values.numel() == 0 or not bool(torch.isfinite(values).all()):
        return None
    if not bool((values != 0).any()):  # for example a network with a last layer initialised to zero
        return None
    if bool((values >= 0).all()):
        if values.shape[-1] > 1 and bool(((values.sum(-1) - 1).abs() < CLOSE).all()):
            return "sums to one"
        return "in [0, 1]" if bool((values <= 1).all()) else None
    return "below zero" if values.shape[-1] == 1 and bool((values <= 0).all()) else None
