"""A sensor of the London Air Quality Network with the median of the network as its truth.

The network may be simulated.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import NonNegativeInt, PositiveFloat, model_validator
from torch import Tensor

from components.contracts.roles import AboveZeroToOne, AtLeastTwo, Setting
from components.contracts.streams import Rng
from components.datasets.stand_in import FileOrSimulationDataset
from components.errors import ConfigMismatchError
from components.registry import register
from components.series.figures.signal import signal
from components.series.sequence import Sequence
from components.series.sequence_data.air_network import (
    FILE,
    SensorNetwork,
    Window,
    read_network,
    simulated_network,
)


@register("dataset", "london_air")
class LondonAir(FileOrSimulationDataset[Sequence]):
    """Hourly measurements of one sensor of the London Air Quality Network.

    y_t of T = ``hours`` consecutive hours, NaN where it is missing; the truth of the signal
    E[y_t | x_t] is the median over the sensors that report at hour t, a simple
    approximation visible only to scores.  The data are not preprocessed.  All R replicates have the
    same observations [R, T, 1]: they are runs of one method with different random numbers.

    Without ``sensor`` and ``start``, ``pick`` chooses among the contaminated windows, ordered by
    decreasing number of outlying hours: windows on a grid of T hours in which at least five sensors
    report at every hour, the median of the network is at most ``max_level`` throughout and less
    than ``max_missing`` of the sensor is missing; an hour is outlying if the sensor is more than
    ``threshold`` robust standard deviations (1.4826 times the median of |y − median| over all its
    hours) from the network's median; at most one window per sensor.  The rule does not use the
    results of any filter, but its form was fixed after some results were known (see the YAML).

    If the file is unavailable, a simulated network replaces it, named
    ``london_air-sim``, with a ``SimulatedDataWarning`` warning, unless ``offline`` is error.

    Raises:
        DataUnavailableError: the file is unavailable and ``offline`` is error.
        DamagedFileError: the file does not match its checksum.
        ConfigMismatchError: a sensor or an hour is not in the data.

    Source: Boustati (2021), section 6.5.4 and appendix D.3.6; londonair.org.uk.
    """

    kind = "sequence"
    traits = {"unknown_states"}
    stand_in = "a simulated network"
    vectorised = True

    species: Literal["PM25", "PM10", "NO2", "O3", "SO2", "CO"]
    sensor: str | NonNegativeInt | None
    start: str | NonNegativeInt | None
    hours: AtLeastTwo
    pick: NonNegativeInt
    threshold: PositiveFloat
    max_level: PositiveFloat
    max_missing: AboveZeroToOne

    @model_validator(mode="after")
    def _check_window_keys(self) -> LondonAir:
        if (self.sensor is None) != (self.start is None):
            raise ValueError("set both sensor and start, or neither, for a window chosen by pick")
        return self

    def file(self) -> str:
        return FILE

    def load(self, rng: Rng, setting: Setting) -> Sequence:
        name, files = self.locate(setting)
        network = read_network(*files, self.species) if files else simulated_network()
        window = self._window(network)
        rows = slice(window.start, window.start + self.hours)
        y = network.values[rows, window.sensor]
        truth = network.median[rows]

        def to_device(value: object, replicates: int) -> Tensor:
            column = (
                torch.as_tensor(value, dtype=torch.float64)
                .view(1, -1, 1)
                .expand(replicates, -1, -1)
            )
            return setting.place(column).contiguous()

        is_suspect = torch.from_numpy(network.deviations[rows, window.sensor] > self.threshold)
        return Sequence(
            name=name,
            states=None,
            observations=to_device(y, setting.replicates),
            means=to_device(truth, 1),
            system=None,
            state_names=[f"{self.species}, {'mg' if self.species == 'CO' else 'µg'}/m³"],
            dates=network.dates(rows),
            figures=[signal],
            suspect=is_suspect.to(setting.device),
            about={
                "truth": "of the signal: median of the network",
                "sensor": f"{network.sites[window.sensor]}, {self.hours} hours from {network.first + window.start}",
                "outlying": f"{window.outlying} hours over {self.threshold:g} robust sd from the network's median",
            },
        )

    def _window(self, network: SensorNetwork) -> Window:
        """Window of hours that the keys select.

        Raises:
            ConfigMismatchError: no window matches the keys.
        """
        if self.sensor is None or self.start is None:
            windows = network.contaminated_windows(
                self.hours, self.threshold, self.max_level, self.max_missing
            )
            if self.pick >= len(windows):
                raise ConfigMismatchError(
                    f"dataset.pick={self.pick}: the rule finds only {len(windows)} windows; lower "
                    "it, or raise dataset.max_level"
                )
            return windows[self.pick]
        sensor = network.column(self.sensor)
        start = network.row(self.start)
        last = len(network.values) - self.hours
        if not 0 <= start <= last:
            raise ConfigMismatchError(
                f"dataset.start={self.start}: the data end less than {self.hours} hours later; "
                f"the start can be {network.first} to {network.first + last}"
            )
        rows = slice(start, start + self.hours)
        outlying = int((network.deviations[rows, sensor] > self.threshold).sum())
        return Window(sensor, start, outlying)
