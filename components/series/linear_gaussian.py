"""Linear Gaussian systems from the matrices that a user writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from components.series.sequence import LinearGaussianSystem

Matrix = list[list[float]]
# "shared": all replicates have one sequence of states; "own": each replicate has its own
StateSource = Literal["shared", "own"]
SHAPES = {
    "A": "dx × dx",
    "Q": "dx × dx",
    "H": "dy × dx",
    "Sigma": "dy × dy",
    "m0": "dx",
    "P0": "dx × dx",
}


def tensors(written: Mapping[str, Matrix | list[float]]) -> dict[str, Tensor]:
    """Matrices in float64 by name.

    Raises:
        ValueError: rows of a matrix differ in length; it names the key.
    """
    out = {}
    for name, rows in written.items():
        if len({len(row) for row in rows if isinstance(row, list)}) > 1:
            raise ValueError(
                f"{name}: rows of different lengths; give each as many numbers as the others"
            )
        out[name] = torch.tensor(rows, dtype=torch.float64)
    return out


def make_system(matrices: Mapping[str, Tensor]) -> LinearGaussianSystem:
    """System of A [dx, dx], Q [dx, dx], H [dy, dx], Sigma [dy, dy], m0 [dx] and P0 [dx, dx].

    Raises:
        ValueError: dimensions do not match the others, or a matrix is not a covariance; it
            names the key.
    """
    dx = matrices["A"].shape[-1]
    dy = matrices["H"].shape[0]
    sizes = {
        "A": (dx, dx),
        "Q": (dx, dx),
        "H": (dy, dx),
        "Sigma": (dy, dy),
        "m0": (dx,),
        "P0": (dx, dx),
    }
    for name, size in sizes.items():
        shape = tuple(matrices[name].shape)
        if shape != size:
            has = " × ".join(map(str, shape))
            wants = " × ".join(map(str, size))
            dimensions = f"dx = {dx} (columns of A)" + (
                f" and dy = {dy} (rows of H)" if name in ("H", "Sigma") else ""
            )
            raise ValueError(
                f"{name}: is {has}, must be {SHAPES[name]} = {wants}, for {dimensions}"
            )
    for name in ("Q", "Sigma", "P0"):
        covariance = matrices[name]
        if not torch.allclose(covariance, covariance.T):
            raise ValueError(f"{name}: not symmetric, a covariance is")
        if torch.linalg.cholesky_ex(covariance)[1]:
            raise ValueError(f"{name}: not positive definite; a covariance has eigenvalues > 0")
    return LinearGaussianSystem(**matrices)


def simulate_system(
    system: LinearGaussianSystem,
    x0: Tensor,
    n_steps: int,
    replicates: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """States x_1 … x_T [T, dx] from x_0 on, the same for all R replicates, and observations of each
    [R, T, dy].

    In float64 on the CPU, states first: neither dtype, device nor the number of replicates changes
    the path."""
    drive = (
        torch.randn(n_steps, len(x0), generator=generator, dtype=torch.float64)
        @ torch.linalg.cholesky(system.Q).T
    )
    path = walk(system.A, x0, drive)
    return path, simulate_observations(system, path, replicates, generator)


def walk(A: Tensor, x0: Tensor, drive: Tensor) -> Tensor:
    """x_t = A x_{t−1} + d_t from x_0 on, for given d [T, dx] or [R, T, dx]; x_1 … x_T, likewise."""
    x = x0
    path = torch.empty_like(drive)
    for t in range(drive.shape[-2]):
        moved = A @ x if x.dim() == 1 else x @ A.T
        x = path[..., t, :] = moved + drive[..., t, :]
    return path


def draw_drive(
    states: StateSource, replicates: int, n_steps: int, dx: int, generator: torch.Generator
) -> Tensor:
    """Standard normal numbers that drive the states, [T, dx] where they are shared, or [R, T, dx];
    float64 on the CPU."""
    shape = (n_steps, dx) if states == "shared" else (replicates, n_steps, dx)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def add_replicates(path: Tensor) -> Tensor:
    """Shared states [T, d] as [1, T, d]; states of each replicate [R, T, d] as they are."""
    return path if path.dim() == 3 else path.unsqueeze(0)


def simulate_observations(
    system: LinearGaussianSystem, path: Tensor, replicates: int, generator: torch.Generator
) -> Tensor:
    """Observations of states [T, dx] for each of R replicates, [R, T, dy]."""
    noise = torch.randn(
        replicates, len(path), len(system.H), generator=generator, dtype=torch.float64
    )
    return path @ system.H.T + noise @ torch.linalg.cholesky(system.Sigma).T
