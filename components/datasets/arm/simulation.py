"""The simulated world: one arm, its friction, its sensors and its motions, generated once and kept
in a file."""

from __future__ import annotations

import functools
import hashlib
import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from components.datasets.arm.newton_euler import Arm, inverse_dynamics
from components.datasets.arm.trajectories import Motion, random_motions
from components.datasets.data_files import folders, writable
from components.datasets.files import remove_parts

Array = NDArray[np.float64]
_HERE = Path(__file__).parent


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
    """All that determines the simulated data."""

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


def read_world(path: Path = _HERE / "seven_joint.yaml") -> SimulationSpec:
    """The world that a parameter file describes."""
    facts = yaml.safe_load(path.read_text())

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
    """Random motions, the torques that they take, and what the sensors make of both.

    x = (q, q̇, q̈) + noise;  y = RNE(q, q̇, q̈) + τ_f(q̇) + noise.  Test rows come from motions of their own.
    """
    # RandomState, not Generator: numpy promises that its streams never change.
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


def checksum() -> str:
    """Checksum of everything that determines the data.

    This is the parameters and the code that turns them into rows.
    """
    digest = hashlib.sha256()
    for name in ("seven_joint.yaml", "newton_euler.py", "trajectories.py", "simulation.py"):
        digest.update((_HERE / name).read_bytes())
    return digest.hexdigest()


def _digest(rows: dict[str, Array]) -> str:
    """Digest of the rows: their names, shapes and numbers."""
    digest = hashlib.sha256()
    for name, array in sorted(rows.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _read(path: Path, expected: str) -> SimulatedRows | None:
    """Rows kept in a file; None if there is no such file, other parameters made it, or they are not
    those written."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            rows = {name: stored[name] for name in SimulatedRows.__annotations__}
            if str(stored["checksum"]) == expected and str(stored["digest"]) == _digest(rows):
                return SimulatedRows(**rows)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        pass
    return None


def _write(path: Path, rows: SimulatedRows, checksum: str) -> bool:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    header = {"checksum": np.array(checksum), "digest": np.array(_digest(vars(rows)))}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_parts(path.parent)
        with part.open("wb") as stream:
            np.savez(stream, **header, **vars(rows))  # type: ignore[arg-type]  # its stub takes allow_pickle among the arrays
        os.replace(part, path)
        return True
    except OSError:  # a full disk: the rows are generated again next time
        return False
    finally:
        part.unlink(missing_ok=True)


@functools.lru_cache(maxsize=1)
def simulated_rows(data_dir: Path) -> SimulatedRows:
    """The rows of the fixed world: read from ``sarcos_sim/`` in the data folder or the user's
    cache, else generated and kept in the first of the two that can be written.  The arrays are
    read-only."""
    expected = checksum()
    places = [folder / "sarcos_sim" / f"rows-{expected[:12]}.npz" for folder in folders(data_dir)]
    rows = next(
        (cached_rows for place in places if (cached_rows := _read(place, expected)) is not None),
        None,
    )
    if rows is None:
        rows = simulate(read_world())
        any(_write(place, rows, expected) for place in places if writable(place.parent))
    for array in vars(rows).values():
        array.flags.writeable = False
    return rows
