"""The trajectories of NUTS, grown by doubling for all chains together; finished chains are no
longer evaluated.

Densities and leapfrog steps are computed on the device of the parameters; trees grow on the CPU.
Their work between two evaluations is small, and on an accelerator many small kernel launches would
take longer than the transfer of the states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.inference.chains import ModelBatch
from components.inference.hamiltonian.growth import (
    TRAJECTORY,
    Leaves,
    Trees,
    add_leaves,
    begin_doubling,
    end_doubling,
    init_trees,
    make_trees,
)
from components.inference.hamiltonian.leapfrog import Phase, energy_error, leapfrog
from components.inference.hamiltonian.mass import Mass
from components.maths.compiled.loops import Array
from components.maths.exponential.standard_draws import standard_uniform


class LeapfrogDynamics(NamedTuple):
    """Hamiltonian dynamics in leapfrog steps of size ε."""

    model: LogJoint
    batch: ModelBatch
    mass: Mass
    eps: float

    def step(self, z: Phase) -> Phase:
        return leapfrog(self.model, self.batch, self.mass, self.eps, z)


@dataclass(frozen=True)
class Draw:
    """The next state of C chains, with statistics of the trajectories; all [C] except ``z``."""

    z: Phase
    energy: Tensor
    acceptance: Tensor  # mean over all states of the trajectory except the first
    diverging: Tensor
    n_steps: Tensor
    depth: Tensor  # accepted doublings


def to_host(*tensors: Tensor) -> list[Array]:
    """Arrays of tensors [A] or [A, P] of one dtype; from an accelerator in a single transfer."""
    if tensors[0].device.type == "cpu":
        return [x.contiguous().numpy() for x in tensors]
    columns = [x if x.dim() == 2 else x.unsqueeze(1) for x in tensors]
    parts = torch.cat(columns, 1).cpu().split([x.shape[1] for x in columns], 1)
    return [part.contiguous().view(x.shape).numpy() for part, x in zip(parts, tensors, strict=True)]


def to_device(x: Array, device: torch.device) -> Tensor:
    """Copy an array to a device without waiting for the device."""
    return torch.from_numpy(x).to(device, non_blocking=True)


def measure_energy(mass: Mass, z: Phase) -> tuple[Tensor, Tensor]:
    """M⁻¹ r [A, P] and H(θ, r) [A]."""
    velocity = mass.velocity(z.r)
    return velocity, mass.kinetic(z.r, velocity) - z.value


def grow_subtrees(
    dynamics: LeapfrogDynamics, trees: Trees, rows: Array, z: Phase, start: Tensor, u: Array
) -> Array:
    """Double the trajectories of the chains ``rows`` [A], which continue from z and started at
    energies ``start`` [A], and return the chains that double again.

    u [2 + 2^j, C] are uniform numbers for directions, samples of new halves, and each of 2^j
    states."""
    size = len(u) - 2
    for i in range(size):
        z = dynamics.step(z)
        velocity, energy = measure_energy(dynamics.mass, z)
        error = energy_error(energy, start)
        *states, errors = to_host(z.theta, z.gradient, z.r, velocity, z.value, energy, error)
        leaves = Leaves(*states)
        active = np.empty(len(rows), np.int64)
        n = add_leaves(trees, rows, leaves, errors, i, u, active)
        if i == size - 1:
            n = end_doubling(trees, rows, active[:n], leaves, u)
        elif 0 < n < len(rows):
            index = to_device(active[:n], start.device)
            z = Phase(z.theta[index], z.r[index], z.value[index], z.gradient[index])
            start = start[index]
        rows = rows[active[:n]]
        if n == 0:
            break
    return rows


def no_u_turn(
    dynamics: LeapfrogDynamics, z: Phase, max_depth: int, generator: torch.Generator
) -> Draw:
    """Draw for each chain one of the states of a trajectory that doubles until it turns.

    The sample of a new half is accepted with probability min(1, w_new/w_old).

    Source: Betancourt (2017), sections A.3.2 and A.4; Hoffman & Gelman (2014), Algorithm 6."""
    C, P = z.theta.shape
    like = z.value
    device = like.device
    velocity, energy = measure_energy(dynamics.mass, z)
    leaves = Leaves(*to_host(z.theta, z.gradient, z.r, velocity, z.value, energy))
    dtype = leaves.theta.dtype
    trees = make_trees(C, P, max_depth, dtype)
    init_trees(trees, leaves)
    rows = np.arange(C)  # chains with active trajectories
    for j in range(max_depth):
        u = standard_uniform((2**j + 2, C), generator, like).cpu().numpy()
        A = len(rows)
        buffer = np.empty(3 * A * P + 2 * A, dtype)
        near = buffer[: 3 * A * P].reshape(3, A, P)
        begin_doubling(trees, rows, u, near, buffer[3 * A * P :].reshape(2, A))
        states, values, start = to_device(buffer, device).split([3 * A * P, A, A])
        theta, gradient, r = states.view(3, A, P)
        z = Phase(theta, r, values, gradient)
        rows = grow_subtrees(dynamics, trees, rows, z, start, u)
        if len(rows) == 0:
            break
    return to_draw(trees, device)


def to_draw(trees: Trees, device: torch.device) -> Draw:
    """The samples of the trajectories, with statistics."""
    samples = trees.samples[TRAJECTORY]
    counts = [trees.diverging, trees.n_steps, trees.depth]
    numbers = [*trees.levels[TRAJECTORY], trees.rates, *counts]
    packed = to_device(np.concatenate([samples.ravel(), *numbers], dtype=samples.dtype), device)
    theta, gradient, r = packed[: samples.size].view(samples.shape)
    value, energy, rates, diverging, n_steps, depth = packed[samples.size :].view(len(numbers), -1)
    return Draw(
        z=Phase(theta.clone(), r.clone(), value.clone(), gradient.clone()),
        energy=energy,
        acceptance=rates / n_steps,
        diverging=diverging.bool(),
        n_steps=n_steps.long(),
        depth=depth.long(),
    )
