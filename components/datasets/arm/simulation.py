"""The simulated world: one arm, its friction, its sensors and its motions."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from components.datasets.arm.newton_euler import Arm, inverse_dynamics
from components.datasets.arm.trajectories import Motion, random_motions

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Friction:
    """Friction in the joints, smoothed around standstill."""

    viscous: Array  # [J] N m s/rad
    coulomb: Array  # [J] N m
    smoothing: float  # rad/s

    def torque(self, qd: Array) -> Array:
        """τ_f = b q̇ + c tanh(q̇/v), opposing the motion, for q̇ [N, J]."""
        return self.viscous * qd + self.coulomb * np.tanh(qd / self.smoothing)


@dataclass(frozen=True)
class SensorNoise:
    """Standard deviations of the sensors' errors."""

    position: float  # rad
    velocity: float  # rad/s
    acceleration: float  # rad/s²
    torque: Array  # [J] N m


@dataclass(frozen=True)
class SimulationSpec:
    """All parameters of the simulated data."""

    arm: Arm
    friction: Friction
    motion: Motion
    noise: SensorNoise
    rows: dict[str, int]
    decimals: int
    seed: int


@dataclass(frozen=True)
class SimulatedRows:
    """Recorded rows: x [N, 3J] positions, velocities, accelerations; y [N, J] torques, N m."""

    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array


def read_world() -> SimulationSpec:
    """Read the simulation parameters from their file."""
    facts = yaml.safe_load((Path(__file__).parent / "seven_joint.yaml").read_text())

    def arrays(part: dict) -> dict:
        return {k: np.array(v) if isinstance(v, list) else v for k, v in part.items()}

    arm = arrays(facts["arm"])
    xx, yy, zz, xy, xz, yz = arm["inertia"].T
    arm["inertia"] = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).transpose(2, 0, 1)
    motion = arrays(facts["motion"]) | {"frequency": tuple(facts["motion"]["frequency"])}
    return SimulationSpec(
        Arm(**arm),
        Friction(**arrays(facts["friction"])),
        Motion(**motion),
        SensorNoise(**arrays(facts["noise"])),
        facts["rows"],
        facts["decimals"],
        facts["seed"],
    )


def simulate(world: SimulationSpec) -> SimulatedRows:
    """Simulate random motions, their torques, and sensor readings of both.

    x = (q, q̇, q̈) + noise;  y = RNE(q, q̇, q̈) + τ_f(q̇) + noise.  Test rows come from separate
    motions.
    """
    # RandomState, not Generator: numpy guarantees that its streams never change.
    random = np.random.RandomState(world.seed)
    recorded: dict[str, Array] = {}
    for part, n in world.rows.items():
        states = random_motions(world.motion, -(-n // world.motion.rows), random)
        q, qd, qdd = (s[:n] for s in states)
        torque = inverse_dynamics(world.arm, q, qd, qdd) + world.friction.torque(qd)
        levels = (world.noise.position, world.noise.velocity, world.noise.acceleration)
        noisy = [
            s + level * random.standard_normal(s.shape)
            for s, level in zip((q, qd, qdd), levels, strict=True)
        ]
        recorded[f"x_{part}"] = np.concatenate(noisy, 1).round(world.decimals)
        recorded[f"y_{part}"] = (
            torque + world.noise.torque * random.standard_normal(torque.shape)
        ).round(world.decimals)
    return SimulatedRows(**recorded)


@functools.lru_cache(maxsize=1)
def simulated_rows() -> SimulatedRows:
    """The rows of the fixed simulation, as read-only arrays."""
    rows = simulate(read_world())
    for array in vars(rows).values():
        array.flags.writeable = False
    return rows
