"""Filling and copying arrays inside compiled loops, where slices take numba long to compile."""

from __future__ import annotations

from components.maths.compiled.loops import Array


def clear(x: Array) -> None:
    """x = 0, of a vector."""
    for i in range(len(x)):
        x[i] = 0.0


def clear_rows(x: Array) -> None:
    """x = 0, of a matrix."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] = 0.0


def copy(x: Array, out: Array) -> None:
    """out = x, of vectors."""
    for i in range(len(x)):
        out[i] = x[i]


def copy_rows(x: Array, out: Array) -> None:
    """out = x, of matrices."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j]
