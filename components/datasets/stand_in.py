"""Files of the catalogue, and substitutes under their own names if the files are unavailable."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from components.contracts.roles import Dataset, Setting
from components.contracts.roles.component import P
from components.datasets.data_files import find, verify_catalogue_file
from components.datasets.files import locate, warn_simulated, why_unavailable
from components.errors import DataUnavailableError


@dataclass(frozen=True)
class FilesOrStandIn:
    """Files under the name ``genuine``, or a substitute under the name ``stand_in``."""

    paths: tuple[str, ...]  # in the catalogue
    genuine: str
    stand_in: str
    substitute: str  # description
    simulated: bool  # the substitute was requested, even if the files exist
    offline: Literal["simulate", "error", "always"]
    what: str = ""  # description of the files; "": their name
    packed: str | None = None  # another format of the single file
    why: str | None = None  # reason why the files are never available

    def _why_unavailable(self, data_dir: Path, offline: bool) -> str | None:
        if self.why is not None or (self.packed and find(data_dir, self.packed)):
            return self.why
        return why_unavailable(Path(data_dir), self.paths, offline)

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``locate`` finds; may download them.

        Raises:
            DataUnavailableError: a file is unavailable and ``offline`` is error."""
        if self.simulated:
            return self.stand_in
        why = self._why_unavailable(data_dir, offline)
        if why is not None and self.offline == "error":
            raise DataUnavailableError(
                f"{why}; or set dataset.offline=simulate to use {self.substitute}"
            )
        return self.genuine if why is None else self.stand_in

    def locate(self, setting: Setting) -> list[Path]:
        """Paths of the files, with verified checksums; empty if the substitute is used.

        Warns about a substitute that was not requested.

        Raises:
            DamagedFileError: a file has unexpected content.
            DataUnavailableError: a file is unavailable and ``offline`` is error.
        """
        if self.identity(setting.data_dir, setting.offline) == self.stand_in:
            if not self.simulated:
                why = self._why_unavailable(setting.data_dir, setting.offline)
                warn_simulated(self.what or self.genuine, self.substitute, self.stand_in, why)
            return []
        packed = find(setting.data_dir, self.packed) if self.packed else None
        if packed is None:
            return [locate(setting.data_dir, path, setting.offline) for path in self.paths]
        verify_catalogue_file(packed, self.paths[0])
        return [packed]


class StandInDataset(Dataset[P]):
    """A data set from files, or from a substitute under another name."""

    def source(self) -> FilesOrStandIn:
        """The files and their substitute."""
        raise NotImplementedError

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``load`` uses; may download them.

        Raises:
            DataUnavailableError: a file is unavailable and ``offline`` is error."""
        return self.source().identity(data_dir, offline)

    def locate(self, setting: Setting) -> tuple[str, list[Path]]:
        """Name of the data and paths of their files; no paths if the substitute is used."""
        return self.identity(setting.data_dir, setting.offline), self.source().locate(setting)


class FileOrSimulationDataset(StandInDataset[P]):
    """A data set from one file; subclasses define the file, the simulation and the loading."""

    stand_in: ClassVar[str] = "a random network of the same shape"  # description of the simulation
    simulated: bool
    offline: Literal["simulate", "error"]

    def file(self) -> str:
        """Path of the file in the catalogue."""
        raise NotImplementedError

    def genuine(self) -> str:
        """Name of the data in the file; simulated data have the suffix ``-sim``."""
        return self.name

    def source(self) -> FilesOrStandIn:
        name = self.genuine()
        what = f"{self.file()} of dataset={self.name}"
        return FilesOrStandIn(
            (self.file(),),
            name,
            f"{name}-sim",
            self.stand_in,
            self.simulated,
            self.offline,
            what=what,
        )
