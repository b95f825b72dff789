"""Base of mail data sets: file or simulated corpus, hold-out, and binary-word problem."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.problems import Batch
from components.contracts.roles import BetweenZeroAndOne, Dataset, Setting
from components.datasets.data_files import find, verify_catalogue_file
from components.datasets.files import locate, warn_simulated, why_unavailable
from components.errors import DataUnavailableError
from components.figures.supervised.calibration import calibration
from components.problems.supervised import Supervised

Offline = Literal["simulate", "error"]


@dataclass(frozen=True)
class MailFile:
    """One text file of the catalogue, or a compressed copy of it, under the name ``genuine``; or a
    simulated corpus."""

    genuine: str
    stand_in: str
    text: str
    packed: str
    simulated: bool  # simulation was requested, even if the files exist
    offline: Offline

    def _why_unavailable(self, data_dir: Path, offline: bool) -> str | None:
        return (
            None
            if find(data_dir, self.packed)
            else why_unavailable(data_dir, (self.text,), offline)
        )

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that would be used; may download them.

        Raises:
            DataUnavailableError: the file cannot be had and ``offline`` is error."""
        why = None if self.simulated else self._why_unavailable(Path(data_dir), offline)
        if why is not None and self.offline == "error":
            raise DataUnavailableError(
                f"{why}; or dataset.offline=simulate to use a simulated corpus"
            )
        return self.stand_in if self.simulated or why is not None else self.genuine

    def path(self, data_dir: Path, offline: bool) -> Path | None:
        """Path of the file, with its content verified; None: simulate.

        A simulation that was not requested is announced by a warning.

        Raises:
            DamagedFileError: the file is there but has unexpected content.
        """
        if self.simulated:
            return None
        why = self._why_unavailable(data_dir, offline)
        if why is not None:
            corpus = "a simulated corpus of the same size"
            warn_simulated(f"dataset={self.genuine}", corpus, self.stand_in, why)
            return None
        packed = find(data_dir, self.packed)
        if packed is None:
            return locate(data_dir, self.text, offline)
        verify_catalogue_file(packed, self.text)
        return packed


def held_out(
    n: int, test_share: float, n_train: int | None, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Rows to train on and to test on of a random permutation: ``test_share`` put aside, and the
    first ``n_train`` of the others (None: all), so that training sets of different sizes are
    nested."""
    n_test = min(max(1, round(test_share * n)), n - 1)
    order = torch.randperm(n, generator=generator)
    return order[n_test:] if n_train is None else order[n_test : n_test + n_train], order[:n_test]


def make_word_problem(
    name: str,
    x: Tensor,
    y: Tensor,
    rows: tuple[Tensor, Tensor],
    batch_size: int | None,
    setting: Setting,
) -> Supervised:
    """Spam (1) or not (0), y [N], from words that are there (1) or not (0), x [N, D]; rows to train
    on and to test on."""

    def batch(chosen: Tensor) -> Batch:
        mask = torch.ones(len(chosen), 1, dtype=torch.bool, device=setting.device)
        return Batch(
            x[chosen].to(setting.device, setting.dtype),
            y[chosen, None].to(setting.device),
            mask,
            1.0,
        )

    return Supervised(
        name=name,
        target="binary",
        train=batch(rows[0]),
        test=batch(rows[1]),
        batch_size=batch_size,
        n_classes=2,
        task_names=["spam"],
        bounds=(0.0, 1.0),
        domain="binary",
        figures=[calibration],
    )


class MailDataset(Dataset):
    """A set of mails as binary words, one file of the catalogue or the simulated corpus
    ``stand_in``."""

    kind = "supervised"
    target = "binary"
    domain = "binary"
    stand_in: ClassVar[str]
    text: ClassVar[str]
    packed: ClassVar[str]
    test_share: BetweenZeroAndOne
    n_train: PositiveInt | None
    simulated: bool
    offline: Offline  # when the file is not available: simulate (the same, with a warning) | error
    batch_size: PositiveInt | None

    @property
    def file(self) -> MailFile:
        return MailFile(
            self.name, self.stand_in, self.text, self.packed, self.simulated, self.offline
        )

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``load`` would use; may download them.

        Raises:
            DataUnavailableError: the file cannot be had and ``offline`` is error."""
        return self.file.identity(data_dir, offline)
