"""``python -m scripts.scaling``: measure the growth of a step's time with the size of a problem, for
docs/scaling.md.

Each line doubles one size three times.  The CPU time of a step is the minimum over several, because
other load can only increase it.  The exponent is log₂ of the last doubling; it is smaller than
the algorithm's exponent as long as the fixed work of a step is not negligible.  The floor is the size
at which fixed work is half of a step: t = a + b nᵖ through the first and the last size with the
algorithm's p."""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import yaml
from pydantic import BaseModel, ConfigDict

from scripts.device_steps import Step, make_step

TABLE = Path(__file__).with_suffix(".yaml")
WARM = 2  # number of warm-up steps
# smallest number of timed steps; more if they fit into SECONDS
LEAST = 5
MOST = 40
SECONDS = 4.0


class Line(BaseModel):
    """A size of a family that is doubled."""

    model_config = ConfigDict(extra="forbid")
    family: str
    size: str  # letter and name of the size
    key: str  # override with {n} for the size
    first: int
    power: float  # exponent of the algorithm
    overrides: list[str]
    afresh: bool = False  # only first steps are comparable

    @property
    def sizes(self) -> list[int]:
        """First size and three doublings."""
        return [self.first * 2**doubling for doubling in range(4)]


def read_table() -> list[Line]:
    """Read all lines."""
    lines = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return [Line(**line) for line in lines]


def time_step(make: Callable[[], Step], afresh: bool) -> float:
    """Minimum CPU time of a step in milliseconds."""
    step = make()
    for _ in range(WARM):
        step()
    times: list[float] = []
    while len(times) < LEAST or (len(times) < MOST and sum(times) < SECONDS):
        if afresh:
            step = make()
        start = time.process_time()
        step()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def floor(line: Line, times: list[float]) -> float | None:
    """Size at which fixed work is half of a step: (a/b)^(1/p); None if undetermined."""
    low = line.sizes[0] ** line.power
    high = line.sizes[-1] ** line.power
    b = (times[-1] - times[0]) / (high - low)
    a = times[0] - b * low
    size = (a / b) ** (1 / line.power) if a > 0 and b > 0 else 0.0
    return size if size >= 1 else None


def measure(line: Line, folder: Path) -> str:
    """Row of the table: milliseconds at each size, exponent, exponent of the algorithm, floor."""
    times = [
        time_step(
            partial(make_step, folder, "cpu", [*line.overrides, line.key.replace("{n}", str(n))]),
            line.afresh,
        )
        for n in line.sizes
    ]
    exponent = math.log2(times[-1] / times[-2])
    size = floor(line, times)
    shown = "  ".join(f"{ms:8.2f}" for ms in times)
    half = "–" if size is None else f"{size:,.0f}"
    first = f"{line.size}, {line.sizes[0]:,} to {line.sizes[-1]:,}"
    return f"{line.family:38}{first:36}{shown}  {exponent:6.2f}  {line.power:3g}  {half:>8}"


def main() -> None:
    """Print the table line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", default="", help="only lines with this word in their family or size"
    )
    only = parser.parse_args().only
    torch.set_num_threads(1)
    heads = "".join(f"{head:>10}" for head in ("n", "2 n", "4 n", "8 n"))
    print(f"{'family':38}{'size':36}{heads}  {'last':>6}  {'alg':>3}  {'floor':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for line in read_table():
            if only in f"{line.family} {line.size}":
                print(measure(line, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
