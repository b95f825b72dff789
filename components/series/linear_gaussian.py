"""Linear Gaussian systems from user-given matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from components.series.sequence import LinearGaussianSystem

Matrix = list[list[float]]
# "shared": all replicates have one sequence of states; "own": each replicate has its own
StateSource = Literal["shared", "own"]
# of the matrices, in dimensions of states and observations
SHAPES = {
    "A": ("dx", "dx"),
    "Q": ("dx", "dx"),
    "H": ("dy", "dx"),
    "Sigma": ("dy", "dy"),
    "m0": ("dx",),
    "P0": ("dx", "dx"),
}


def tensors(written: Mapping[str, Matrix | list[float]]) -> dict[str, Tensor]:
    """Matrices in float64 by name.

    Raises:
        ValueError: rows of a matrix differ in length; the message names the key.
    """
    out = {}
    for name, rows in written.items():
        if len({len(row) for row in rows if isinstance(row, list)}) > 1:
            raise ValueError(
                f"{name}: rows have different lengths; give each row the same number of values"
            )
        out[name] = torch.tensor(rows, dtype=torch.float64)
    return out


def make_system(matrices: Mapping[str, Tensor]) -> LinearGaussianSystem:
    """System of A [dx, dx], Q [dx, dx], H [dy, dx], Sigma [dy, dy], m0 [dx] and P0 [dx, dx].

    Raises:
        ValueError: dimensions do not match, or a matrix is not a covariance; the message names the
            key.
    """
    sizes = {"dx": matrices["A"].shape[-1], "dy": matrices["H"].shape[0]}
    for name, letters in SHAPES.items():
        size = tuple(sizes[letter] for letter in letters)
        shape = tuple(matrices[name].shape)
        if shape != size:
            has = " × ".join(map(str, shape))
            wants = f"{' × '.join(letters)} = {' × '.join(map(str, size))}"
            dimensions = f"dx = {sizes['dx']} (columns of A)" + (
                f" and dy = {sizes['dy']} (rows of H)" if "dy" in letters else ""
            )
            raise ValueError(f"{name}: is {has}, but must be {wants} for {dimensions}")
    for name in ("Q", "Sigma", "P0"):
        covariance = matrices[name]
        if not torch.allclose(covariance, covariance.T):
            raise ValueError(f"{name}: not symmetric; a covariance must be symmetric")
        if torch.linalg.cholesky_ex(covariance)[1]:
            raise ValueError(
                f"{name}: not positive definite; a covariance must have eigenvalues > 0"
            )
    return LinearGaussianSystem(**matrices)


def walk(A: Tensor, x0: Tensor, drive: Tensor) -> Tensor:
    """Iterate x_t = A x_{t−1} + d_t from x_0 for given d [T, dx] or [R, T, dx]; return x_1 … x_T
    of the same shape."""
    x = x0
    path = torch.empty_like(drive)
    for t in range(drive.shape[-2]):
        product = A @ x if x.dim() == 1 else x @ A.T
        x = path[..., t, :] = product + drive[..., t, :]
    return path


def draw_drive(
    states: StateSource, replicates: int, n_steps: int, dx: int, generator: torch.Generator
) -> Tensor:
    """Standard normal noise of the states, [T, dx] if shared, else [R, T, dx]; float64 on the
    CPU."""
    shape = (n_steps, dx) if states == "shared" else (replicates, n_steps, dx)
    return torch.randn(shape, generator=generator, dtype=torch.float64)
