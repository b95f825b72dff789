"""A network of air-quality sensors: its hours, its median, and windows in which one sensor is
contaminated."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from components.errors import ConfigMismatchError, DamagedFileError

FILE = "london_air/laqn_hourly_2023_2025.npz"
FEWEST_SITES = 5  # needed for a median that serves as the truth
SIMULATED_HOURS = 8_760
SIMULATED_SITES = 24
SIMULATION_SEED = 2021
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Window:
    """Consecutive hours of one sensor."""

    sensor: int  # column of the network
    start: int  # its first hour, a row
    outlying: int  # hours at which the sensor is far from the network's median


@dataclass(frozen=True)
class SensorNetwork:
    """Measurements of S sensors at H consecutive hours."""

    values: Array  # [H, S], NaN where missing
    sites: list[str]  # codes of the S sensors
    first: np.datetime64  # the first hour

    @cached_property
    def reporting(self) -> NDArray[np.int64]:
        """Number of sensors that report at each hour [H]."""
        return (~np.isnan(self.values)).sum(1)

    @cached_property
    def median(self) -> Array:
        """Median over the sensors that report, NaN without reports [H]."""
        out = np.full(len(self.values), np.nan)
        some = self.reporting > 0
        out[some] = np.nanmedian(self.values[some], axis=1)
        return out

    @cached_property
    def deviations(self) -> Array:
        """|y − median| in robust standard deviations of each sensor (1.4826 times the median over
        all hours) [H, S]."""
        apart = np.abs(self.values - self.median[:, None])
        return apart / (1.4826 * np.nanmedian(apart, axis=0))

    def column(self, code: str | int) -> int:
        """Column of a sensor, by its code or number.

        Raises:
            ConfigMismatchError: there is no such sensor.
        """
        if isinstance(code, str) and code in self.sites:
            return self.sites.index(code)
        if isinstance(code, int) and 0 <= code < len(self.sites):
            return code
        raise ConfigMismatchError(
            f"dataset.sensor={code}: not a sensor of this species; there are {', '.join(self.sites)}"
        )

    def row(self, start: str | int) -> int:
        """Row of an hour, by its number, or by date and hour.

        Raises:
            ConfigMismatchError: the text is not a date.
        """
        if isinstance(start, int):
            return start
        try:
            return int((np.datetime64(start, "h") - self.first) / np.timedelta64(1, "h"))
        except ValueError:
            raise ConfigMismatchError(
                f"dataset.start={start}: not the number of an hour or a date such as 2024-06-09T00"
            ) from None

    def dates(self, rows: slice) -> tuple[str, ...]:
        """Hours of a range of rows, in ISO 8601."""
        return tuple(str(self.first + row) for row in range(rows.start, rows.stop))

    def contaminated_windows(
        self, hours: int, threshold: float, max_level: float, max_missing: float
    ) -> list[Window]:
        """Windows by the rule of ``london_air``, the most contaminated first, at most one per
        sensor."""
        windows = []
        for start in range(0, len(self.values) - hours + 1, hours):
            rows = slice(start, start + hours)
            if self.reporting[rows].min() < FEWEST_SITES or self.median[rows].max() > max_level:
                continue
            missing = np.isnan(self.values[rows]).mean(0)
            outlying = (self.deviations[rows] > threshold).sum(0)  # NaN is not
            windows += [
                Window(s, start, int(outlying[s]))
                for s in np.flatnonzero(missing < max_missing).tolist()
            ]
        windows.sort(key=lambda w: -w.outlying)  # stable: the earlier window first
        first: dict[int, Window] = {}
        for window in windows:
            first.setdefault(window.sensor, window)
        return list(first.values())


@lru_cache(maxsize=2)
def read_network(path: Path, species: str) -> SensorNetwork:
    """Read the file of the London Air Quality Network.

    Raises:
        DamagedFileError: the file has unexpected content.
    """
    try:
        with np.load(path) as arrays:
            values = arrays[f"{species}_values"].astype(np.float64)
            sites = [str(code) for code in arrays[f"{species}_sites"]]
            hours = arrays["time_hours_since_1970"]
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise DamagedFileError(
            f"{path}: contains no measurements of {species} ({error}); replace or remove the file"
        ) from None
    return SensorNetwork(values, sites, np.datetime64("1970-01-01T00", "h") + int(hours[0]))


@lru_cache(maxsize=1)
def simulated_network() -> SensorNetwork:
    """A simulated network of the same kind, independent of the seed of a run.

    Levels drift slowly; each sensor has its own gain, and noise of 1 µg/m³; one measurement
    in fifty is 10 to 90 µg/m³ too high, and one in fifty is missing.
    """
    rng = np.random.default_rng(SIMULATION_SEED)
    hours = SIMULATED_HOURS
    sites = SIMULATED_SITES
    wander = slope = 0.0
    path = np.empty(hours)
    for t in range(
        hours
    ):  # a smooth process around 0 with variance about 1 and a correlation time of a day
        slope += -0.25 * slope - 0.02 * wander + 0.1 * rng.standard_normal()
        wander += slope
        path[t] = wander
    level = 7 * np.exp(0.3 * path / path.std())  # [H], µg/m³
    values = level[:, None] * rng.uniform(0.9, 1.1, sites) + rng.standard_normal((hours, sites))
    spikes = rng.random((hours, sites)) < 0.02
    values = np.maximum(values, 0) + spikes * rng.uniform(10, 90, (hours, sites))
    values[rng.random((hours, sites)) < 0.02] = np.nan
    return SensorNetwork(
        values, [f"S{s:02d}" for s in range(sites)], np.datetime64("2023-01-01T00", "h")
    )
