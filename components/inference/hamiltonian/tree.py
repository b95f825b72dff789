"""The trajectories of NUTS, grown by doubling for all chains together; a chain that is done is no
longer evaluated.

Densities and leapfrog steps are taken where the parameters lie, and trees grow on the CPU: between
two evaluations they take little, and on an accelerator a launch for each little thing would take
longer than moving the states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.inference.chains import ModelBatch
from components.inference.hamiltonian.growth import Leaf, Trees, compiled, make_trees
from components.inference.hamiltonian.leapfrog import Phase, energy_error, leapfrog
from components.inference.hamiltonian.mass import Mass
from components.maths.compiled.loops import Array
from components.maths.exponential.standard_draws import standard_uniform


class Dynamics(NamedTuple):
    """Hamiltonian dynamics in leapfrog steps of size ε."""

    model: LogJoint
    batch: ModelBatch
    mass: Mass
    eps: float

    def step(self, z: Phase) -> Phase:
        return leapfrog(self.model, self.batch, self.mass, self.eps, z)


@dataclass(frozen=True)
class Draw:
    """The next state of C chains, and what its trajectories were like; all [C] but ``z``."""

    z: Phase
    energy: Tensor
    acceptance: Tensor  # mean over all states of the trajectory but the first
    diverging: Tensor
    n_steps: Tensor
    depth: Tensor  # doublings accepted


def to_host(*tensors: Tensor) -> list[Array]:
    """Arrays of tensors [A, …] of one type; from an accelerator in one transfer."""
    if tensors[0].device.type == "cpu":
        return [x.contiguous().numpy() for x in tensors]
    columns = [x if x.dim() == 2 else x.unsqueeze(1) for x in tensors]
    parts = torch.cat(columns, 1).cpu().split([x.shape[1] for x in columns], 1)
    return [part.reshape(x.shape).numpy() for part, x in zip(parts, tensors, strict=True)]


def to_device(x: Array, device: torch.device) -> Tensor:
    """The tensor of an array, on a device that the CPU does not wait for."""
    return torch.from_numpy(x).to(device, non_blocking=True)


def evaluate_leaf(mass: Mass, z: Phase, start: Tensor | None = None) -> tuple[Leaf, Array]:
    """States z [A] on the CPU, and the errors of their energies; ``start``: H₀ [A], None: their
    own."""
    velocity = mass.velocity(z.r)
    energy = mass.kinetic(z.r, velocity) - z.value
    error = energy_error(energy, energy if start is None else start)
    arrays = to_host(z.theta, z.gradient, z.r, velocity, z.value, energy, error)
    return Leaf(*arrays[:-1]), arrays[-1]


def grow_subtree(
    dynamics: Dynamics, trees: Trees, u: Array, rows: Array, z: Phase, energy: Tensor
) -> Array:
    """Double the trajectories of the chains ``rows`` [A], which go on from z and began at energies
    H₀ [A], and return those that go on after that.

    Uniform numbers u [2 + 2^j, C]: for directions, for taking a sample of the new half, and for
    each of its states."""
    loops = compiled()
    size = len(u) - 2
    for i in range(size):
        z = dynamics.step(z)
        leaf, error = evaluate_leaf(dynamics.mass, z, energy)
        left = np.empty(len(rows), np.int64)
        n = loops.add_leaf(trees, rows, leaf, error, i, u, left)
        if i == size - 1:
            n = loops.end_doubling(trees, rows, left[:n], leaf, u)
            return rows[left[:n]]
        if n < len(rows):
            rows = rows[left[:n]]
            index = to_device(left[:n], energy.device)
            z = Phase(z.theta[index], z.r[index], z.value[index], z.gradient[index])
            energy = energy[index]
        if n == 0:
            break
    return rows


def no_u_turn(dynamics: Dynamics, z: Phase, max_depth: int, generator: torch.Generator) -> Draw:
    """A draw for each chain from the states of a trajectory that doubles until it turns.

    A new half is taken for the next state with probability min(1, w_new/w_old).

    Source: Betancourt (2017), sections A.3.2 and A.4; Hoffman & Gelman (2014), Algorithm 6."""
    loops = compiled()
    C, P = z.theta.shape
    like = z.value
    device = like.device
    leaf, _ = evaluate_leaf(dynamics.mass, z)
    trees = make_trees(C, P, max_depth, leaf.theta.dtype)
    loops.plant(trees, leaf)
    energy = to_device(leaf.energy, device)
    rows = np.arange(C)  # chains with a trajectory that goes on
    for j in range(max_depth):
        u = standard_uniform((2**j + 2, C), generator, like).cpu().numpy()
        start = np.empty((3, len(rows), P), leaf.theta.dtype)
        value = np.empty(len(rows), leaf.theta.dtype)
        loops.begin_doubling(trees, rows, u, start, value)
        theta, gradient, r = to_device(start, device)
        z = Phase(theta, r, to_device(value, device), gradient)
        start_energy = energy if len(rows) == C else energy[to_device(rows, device)]
        rows = grow_subtree(dynamics, trees, u, rows, z, start_energy)
        if len(rows) == 0:
            break
    theta, gradient, r = (to_device(x.copy(), device) for x in trees.samples[0])
    value, end_energy = (to_device(x.copy(), device) for x in trees.levels[0])
    rates, n_steps, depth, diverging = (to_device(x, device) for x in trees[-4:])
    return Draw(
        Phase(theta, r, value, gradient), end_energy, rates / n_steps, diverging, n_steps, depth
    )
