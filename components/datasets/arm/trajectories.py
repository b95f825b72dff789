"""Smooth random motions of an arm's joints, within limits of position, speed and acceleration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Motion:
    """Common parameters of the motions; J joints."""

    lower: Array  # [J] rad
    upper: Array  # [J] rad
    speed: Array  # [J] largest |q̇|, rad/s
    acceleration: Array  # [J] largest |q̈|, rad/s²
    # spread of the centres of motions, as a share of half a joint's range, in [0, 1)
    spread: float
    harmonics: int  # K sinusoids per joint
    frequency: tuple[float, float]  # smallest and largest frequency of a sinusoid, Hz
    rows: int  # samples recorded per motion
    rate: float  # sampling rate, Hz


def random_motions(
    motion: Motion, count: int, random: np.random.RandomState
) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations of ``count`` independent motions.

    q_j(t) = c_j + Σ_k a_jk sin(2π f_jk t + φ_jk), with c_j, f_jk and φ_jk uniform, Σ_k a_jk small
    enough that q_j stays within its limits, and Σ_k a_jk (2π f_jk)^p at most the largest speed (p =
    1) and acceleration (p = 2).  Every motion has its own parameters, so the motions are
    independent.

    Each [count · rows, J], motion by motion.
    """
    joints = len(motion.lower)
    k = motion.harmonics
    middle = (motion.upper + motion.lower) / 2
    half = (motion.upper - motion.lower) / 2
    shift = motion.spread * half * random.uniform(-1, 1, (count, joints))
    omega = 2 * np.pi * random.uniform(*motion.frequency, (count, joints, k))
    phase = random.uniform(0, 2 * np.pi, (count, joints, k))
    a = random.uniform(0, 1, (count, joints, k))
    a *= ((half - np.abs(shift)) / a.sum(-1))[..., None]
    for power, limit in ((1, motion.speed), (2, motion.acceleration)):
        a *= np.minimum(1, limit / (a * omega**power).sum(-1))[..., None]
    t = np.arange(motion.rows)[:, None, None] / motion.rate
    angle = omega[:, None] * t + phase[:, None]  # [count, rows, J, K]
    sine = np.sin(angle)
    cosine = np.cos(angle)
    q = (middle + shift)[:, None] + (a[:, None] * sine).sum(-1)
    qd = ((a * omega)[:, None] * cosine).sum(-1)
    qdd = -((a * omega**2)[:, None] * sine).sum(-1)
    return q.reshape(-1, joints), qd.reshape(-1, joints), qdd.reshape(-1, joints)
