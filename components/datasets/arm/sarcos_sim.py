"""Inverse dynamics of a simulated seven-joint arm, in the shape of SARCOS."""

from __future__ import annotations

from pathlib import Path

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.arm.protocol import PartlyLabelled, sample_rows
from components.datasets.arm.simulation import simulated_rows
from components.problems.supervised import Supervised
from components.registry import register


@register("dataset", "sarcos_sim")
class SarcosSim(PartlyLabelled):
    """Torques of a simulated seven-joint arm from its joints' positions, velocities and
    accelerations.

    y = M(q) q̈ + C(q, q̇) q̇ + g(q) + b q̇ + c tanh(q̇/v) + ε, rigid-body dynamics by the recursive
    Newton–Euler algorithm with viscous and Coulomb friction, along smooth random motions; sensor
    noise on positions (rad), velocities (rad/s), accelerations (rad/s²) and torques (N m).  There
    are 44,484 training rows, and 4,449 test rows from separate motions: one fixed simulation with
    invented but realistic parameters (``arm/seven_joint.yaml``), the same for every seed.  A run
    draws N training rows and ``labels_per_row`` of the 7 labels of each, and standardises by them.
    x [N, 21], y [N, 7].

    Source: Boustati (2021), appendix A.1.2; Craig (2005), eqs (6.45)–(6.53)."""

    def identity(self, data_dir: Path, offline: bool) -> str:
        return "sarcos-sim"

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        rows = simulated_rows()
        test = sample_rows((rows.x_test, rows.y_test), self.n_test, rng)
        train = (rows.x_train, rows.y_train)
        return self.make_problem("sarcos-sim", train, test, rng, setting)
