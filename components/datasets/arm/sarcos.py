"""SARCOS inverse dynamics: the published files, the test file only, or a simulated arm."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.arm.protocol import TEST_ROWS, Array, PartlyLabelled, sample_rows
from components.datasets.arm.simulation import simulated_rows
from components.datasets.stand_in import FilesOrStandIn, StandInDataset
from components.problems.supervised import Supervised
from components.registry import register

INPUTS = 21
TEST_OF_TEST_FILE = 1_000
FILES = {
    "official": ("sarcos/sarcos_inv.mat", "sarcos/sarcos_inv_test.mat"),
    "test_file": ("sarcos/sarcos_inv_test.mat",),
    "simulated": (),
}
NAMES = {"official": "sarcos", "test_file": "sarcos-test-file", "simulated": "sarcos-sim"}


@functools.lru_cache(maxsize=2)
def _read(path: Path) -> tuple[Array, Array]:
    """Inputs [N, 21] (7 positions, 7 velocities, 7 accelerations) and torques [N, 7] of a published
    file."""
    from scipy.io import loadmat  # slow to import

    rows = loadmat(path)[path.stem]
    return rows[:, :INPUTS], rows[:, INPUTS:]


@register("dataset", "sarcos")
class Sarcos(PartlyLabelled, StandInDataset[Supervised]):
    """Torques of the seven SARCOS arm joints from positions, velocities and accelerations.

    Each of N training rows has one label, drawn uniformly at random (``labels_per_row`` of the 7);
    test rows have all 7.  Inputs and labels are standardised by the training rows, and scores are
    in standardised units.  ``split`` official takes the training rows from the published training
    file and the test rows from the published test file, which is known to overlap with it.
    test_file takes 1,000 test rows and the training pool from the 4,449 rows of the test file only,
    named ``sarcos-test-file``.  simulated is the arm of ``sarcos_sim``, named ``sarcos-sim``, which
    also replaces files that cannot be obtained, with a ``SimulatedDataWarning`` warning, unless
    ``offline`` is error.  x [N, 21], y [N, 7].

    Raises:
        DataUnavailableError: files cannot be obtained.
        DamagedFileError: a file does not match its checksum.

    Source: Boustati (2021), section 3.5.2, appendix A.1.2; Vijayakumar, D'Souza, Shibata,
    Conradt & Schaal (2002).
    """

    split: Literal["official", "test_file", "simulated"]
    offline: Literal["simulate", "error"]

    @model_validator(mode="after")
    def _check_row_count(self) -> Sarcos:
        pool = TEST_ROWS - (self._test_rows or 0)
        if self.split == "test_file" and self.n_train > pool:
            raise ValueError(
                f"n_train={self.n_train}: split=test_file leaves {pool} of its {TEST_ROWS} rows for training; set "
                f"dataset.n_train to at most {pool}, or lower dataset.n_test, or choose dataset.split=official"
            )
        return self

    @property
    def _test_rows(self) -> int | None:
        return (
            TEST_OF_TEST_FILE if self.split == "test_file" and self.n_test is None else self.n_test
        )

    def source(self) -> FilesOrStandIn:
        return FilesOrStandIn(
            FILES[self.split],
            NAMES[self.split],
            NAMES["simulated"],
            "a simulated seven-joint arm",
            self.split == "simulated",
            self.offline,
            what=f"dataset.split={self.split}",
        )

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        name, paths = self.locate(setting)
        if not paths:
            rows = simulated_rows()
            train = (rows.x_train, rows.y_train)
            test = (rows.x_test, rows.y_test)
        else:
            train = _read(paths[0])
            test = _read(paths[-1])
        if name == NAMES["test_file"]:
            x, y = sample_rows(test, TEST_ROWS, rng)
            n = self._test_rows or 0
            train = (x[n:], y[n:])
            test = (x[:n], y[:n])
        else:
            test = sample_rows(test, self._test_rows, rng)
        return self.make_problem(name, train, test, rng, setting)
