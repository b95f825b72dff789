"""Compiled uniform and standard normal numbers from a hashed counter, three to ten times faster
than torch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from components.maths.compiled.functions import log_scaled, sin_cos_4
from components.maths.compiled.loops import Array, compiled

# step of the counter: 2⁶⁴ divided by the golden ratio, odd
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SPLITMIX_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)
# numba would convert a signed with an unsigned integer to a float
TWO, S11, S27, S30, S31 = (np.uint64(k) for k in (2, 11, 27, 30, 31))
STEP = 2.0**-53
BLOCK = 1024  # pairs at a time, which fit in the first-level cache


def mixed(z: Any) -> Any:
    """The 64-bit hash of a counter.

    Source: Steele, Lea & Flood (2014), figure 17 with the constants of Stafford's variant 13
    (SplitMix64)."""
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SPLITMIX_MULTIPLIER_2
    return z ^ (z >> S31)


def _uniforms(seed: Any, start: Any, u: Array, turns: Array) -> None:
    """u in (0, 1] and turns in [0, 1) for pairs start, start + 1, …, 53 bits each."""
    for i in range(len(u)):
        counter = seed + TWO * (start + np.uint64(i)) * GOLDEN
        u[i] = (np.float64(np.int64(mixed(counter) >> S11)) + 1.0) * STEP
        turns[i] = np.float64(np.int64(mixed(counter + GOLDEN) >> S11)) * STEP


def _split(bits: Array, exponents: Array) -> None:
    """Split positive numbers, read as bits, into m 2^e with 1 ≤ m < 2, in place."""
    for i in range(len(bits)):
        exponents[i] = np.float64((bits[i] >> 52) - 1023)
        bits[i] = (bits[i] & ((1 << 52) - 1)) | (1023 << 52)


def _pairs(u: Array, exponents: Array, turns: Array, first: Array, second: Array) -> None:
    """√(−2 log u) times the cosine and the sine of an angle; ``u`` has been split."""
    for i in range(len(u)):
        radius = math.sqrt(-2 * log_scaled(u[i], exponents[i]))
        sine, cosine = sin_cos_4((turns[i] - 0.5) * (math.pi / 2))
        first[i] = radius * cosine
        second[i] = radius * sine


@compiled(fast=True)
def _normals(seed: Any, z: Array, u: Array, bits: Array, exponents: Array, turns: Array) -> None:
    half = len(z) // 2
    for start in range(0, half, BLOCK):
        m = min(BLOCK, half - start)
        _uniforms(seed, np.uint64(start), u[:m], turns[:m])
        _split(bits[:m], exponents[:m])
        _pairs(
            u[:m],
            exponents[:m],
            turns[:m],
            z[start : start + m],
            z[half + start : half + start + m],
        )


@compiled()
def _fill(seed: Any, u: Array) -> None:
    for i in range(len(u)):
        u[i] = np.float64(np.int64(mixed(seed + np.uint64(i) * GOLDEN) >> S11)) * STEP


def _seed(generator: torch.Generator) -> Any:
    return np.uint64(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


def uniforms(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Independent numbers in [0, 1) on the CPU, multiples of 2⁻⁵³, from a seed drawn from the
    generator."""
    u = torch.empty(shape, dtype=torch.float64)
    _fill(_seed(generator), u.view(-1).numpy())
    return u


def standard_normals(
    shape: tuple[int, ...], generator: torch.Generator, dtype: torch.dtype
) -> Tensor:
    """Independent standard normal numbers on the CPU, from a seed drawn from the generator.

    They are computed in float64 for every dtype, so that all dtypes have the same numbers.  For
    pairs i, z = √(−2 log u_i) (cos, sin)(2π(v_i − ½)), with cos parts in the first and sin parts in
    the second half of memory.

    Source: Box & Muller (1958).
    """
    n = math.prod(shape)
    z = torch.empty(n + n % 2, dtype=dtype)
    u = np.empty(BLOCK)
    exponents = np.empty(BLOCK)
    turns = np.empty(BLOCK)
    _normals(_seed(generator), z.numpy(), u, u.view(np.int64), exponents, turns)
    return z[:n].view(shape)
