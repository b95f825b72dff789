"""A substitute for the delays of flights in the United States, January to April 2008."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from components.datasets.benchmarks.big_table import Array, BigTable
from components.datasets.stand_in import FilesOrStandIn
from components.registry import register


def simulated_flights(rows: int) -> Array:
    """[rows, 8 + 1]: age of the aircraft (years), distance (miles), air time (minutes), departure
    and arrival (minutes of the day), day of the week, day of the month, month, and the delay
    (minutes).

    delay = b(x) + s(x) t + h(x) e, with t Student's t with 3 degrees of freedom and e exponential
    for held-up flights.  Both grow through the day, and b is larger on Fridays and in January."""
    rng = np.random.default_rng([*b"airlines"])
    age = rng.gamma(2.0, 5.0, rows)
    distance = 100 + rng.gamma(1.6, 400.0, rows)
    air_time = 18 + distance / 7.5 + rng.normal(0, 8, rows)
    departure = 300 + 1080 * rng.beta(1.3, 1.2, rows)
    arrival = (departure + air_time + 25) % 1440
    weekday = rng.integers(1, 8, rows)
    day = rng.integers(1, 31, rows)
    month = rng.integers(1, 5, rows)
    late = (departure - 300) / 1080  # 0 in the morning, 1 at night
    base = -8 + 12 * late**2 + 3 * (weekday == 5) + 4 * (month == 1) + 0.1 * age
    scale = 6 + 10 * late + 0.004 * distance
    held_up = rng.random(rows) < 0.06 + 0.2 * late + 0.05 * (month <= 2)
    delay = base + scale * rng.standard_t(3, rows) + held_up * rng.exponential(30 + 40 * late)
    columns = [age, distance, air_time, departure, arrival, weekday, day, month, delay]
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], 1)


@register("dataset", "airlines")
class Airlines(BigTable):
    """Simulated flight delays from eight attributes: two million noisy, heavy-tailed labels.

    The paper's table (2008, January to April, joined with a register of aircraft, without rows with
    missing values) was not published, and no genuine copy could be verified.  Flights are therefore
    simulated from a similar distribution, named ``airlines-sim``, and results are not comparable
    with published ones.  Of 2,127,068 rows, ``n_test`` drawn by the run's seed are scored and
    ``n_train`` (null: all others) are for training; data are standardised, and scores are in
    minutes.  x [N, 8], y [N, 1].

    Raises:
        ConfigMismatchError: more rows are requested than exist.

    Source: Hensman, Fusi and Lawrence (2013), section 6.2; Rodríguez Santana and
    Hernández-Lobato (2020), section 6.3.
    """

    label = "delay (minutes)"
    total = 2_127_068  # size of the paper's data
    stand_in = "a simulation of similar flights"

    def source(self) -> FilesOrStandIn:
        return replace(super().source(), why="the table of the paper was not published")

    def file(self) -> str:
        return "airlines"

    def rows(self, files: list[Path], simulate: int) -> Array:
        return simulated_flights(simulate)
