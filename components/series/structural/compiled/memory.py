"""Filling and copying of arrays in compiled loops, where numba compiles slices slowly."""

from __future__ import annotations

from components.maths.compiled.loops import Array


def clear(x: Array) -> None:
    """x = 0 for a vector."""
    for i in range(len(x)):
        x[i] = 0.0


def clear_rows(x: Array) -> None:
    """x = 0 for a matrix."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = 0.0


def copy(x: Array, out: Array) -> None:
    """out = x for vectors."""
    for i in range(len(x)):
        out[i] = x[i]


def copy_rows(x: Array, out: Array) -> None:
    """out = x for matrices."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]
