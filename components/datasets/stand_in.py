"""A data set of one file of the catalogue, and what is simulated in its place, under its own name,
where it cannot be had."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from components.contracts.roles import Dataset, Setting
from components.contracts.roles.dataset import P
from components.datasets.files import locate, warn_simulated, why_unavailable
from components.errors import DataUnavailableError


class FileOrSimulationDataset(Dataset[P]):
    """Names, finds and announces; what a subclass adds is its file, what is simulated, and how
    either is read."""

    stand_in: ClassVar[str] = "a random network of the same shape"  # the simulated object, in words
    simulated: bool
    offline: Literal["simulate", "error"]

    def file(self) -> str:
        """Its path in the catalogue."""
        raise TypeError(f"{type(self).__name__} has no file")

    def genuine(self) -> str:
        """Name of the data of the file; those simulated in their place are called this and
        ``-sim``."""
        return self.name

    def _why_unavailable(self, data_dir: Path, offline: bool) -> str | None:
        return None if self.simulated else why_unavailable(data_dir, (self.file(),), offline)

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``load`` would use; may download them.

        Raises:
            DataUnavailableError: the file cannot be had and ``offline`` is error."""
        why = self._why_unavailable(Path(data_dir), offline)
        if why is not None and self.offline == "error":
            raise DataUnavailableError(f"{why}; or dataset.offline=simulate to use {self.stand_in}")
        return f"{self.genuine()}-sim" if self.simulated or why is not None else self.genuine()

    def locate(self, setting: Setting) -> Path | None:
        """Path of the file, with its checksum verified; None: simulate.

        A simulation that was not requested is announced by a warning.

        Raises:
            DamagedFileError: the file is there but has unexpected content.
        """
        if self.simulated:
            return None
        why = self._why_unavailable(Path(setting.data_dir), setting.offline)
        if why is None:
            return locate(Path(setting.data_dir), self.file(), setting.offline)
        file = f"{self.file()} of dataset={self.name}"
        warn_simulated(file, self.stand_in, f"{self.genuine()}-sim", why)
        return None
