"""Price list of a study: each run priced from a record or a probe, and laid out by row."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from runner.study.pricing.forecast import makespan, words
from runner.study.pricing.price import Price
from runner.study.pricing.probes import measure_runs
from runner.study.pricing.study_records import StudyRecords, cost_key
from runner.study.snapshot import FrozenRun, Snapshot
from runner.terminal.printer import out

SOURCES = {
    "record": "from records",
    "probe": "from probes",
    "rough": "rough",
    "error": "without a price",
}
KEPT_APART = 1.5  # a spread from which a range is shown


@dataclass(frozen=True)
class PriceList:
    """Prices of runs by signature, and what it took to find them."""

    prices: Mapping[str, Price]
    probes: int = 0
    seconds: float = 0.0  # by the clock

    def seconds_of(self, run: FrozenRun) -> float:
        """Expected seconds of a run by the clock, if its threads have a core each; NaN: unknown."""
        price = self.prices[run.signature]
        return math.nan if price.error else price.cpu / max(1, int(run.config.get("threads") or 1))


def price_runs(
    snapshot: Snapshot,
    runs: Sequence[FrozenRun],
    jobs: int,
    seconds: float | None,
    ends: float = math.inf,
) -> PriceList:
    """Prices of runs: from records of equal runs, else from probes of ``seconds`` each, one for all
    runs of equal cost; without probes (None) from records of the same components.  No probe begins
    after ``ends`` of the monotonic clock."""
    records = StudyRecords(snapshot, runs)
    prices = {run.signature: records.price(run) for run in runs}
    known = {signature: price for signature, price in prices.items() if price is not None}
    open_runs = [run for run in runs if run.signature not in known]
    if seconds is None:
        return PriceList(known | {run.signature: records.rough_price(run) for run in open_runs})
    groups: dict[tuple[str, str, int], list[FrozenRun]] = {}
    for run in open_runs:
        key = run.experiment, cost_key(run.config, run.data), int(run.config["replicates"])
        groups.setdefault(key, []).append(run)
    began = time.monotonic()
    probes = measure_runs(snapshot, [group[0] for group in groups.values()], jobs, seconds, ends)
    for group in groups.values():
        known |= {run.signature: probes[group[0].signature] for run in group}
    return PriceList(known, len(probes), time.monotonic() - began)


@dataclass(frozen=True)
class PricedRow:
    """One line of the list: some runs together."""

    name: str
    runs: int
    price: Price  # of all runs that have one; memory is that of the largest process
    wall: float  # seconds by the clock, some runs at a time
    without: int  # runs without a price

    def to_json(self) -> dict[str, object]:
        """Values with their units, for other programs."""
        price = self.price
        return {
            "row": self.name,
            "runs": self.runs,
            "cpu_seconds": round(price.cpu, 1),
            "cpu_seconds_low": round(price.cpu / price.spread, 1),
            "cpu_seconds_high": round(price.cpu * price.spread, 1),
            "wall_seconds": round(self.wall, 1),
            "peak_mib": None if price.mib is None else round(price.mib),
            "disk_mb": None if price.megabytes is None else round(price.megabytes, 3),
            "source": price.source,
            "note": price.note,
            "error": price.error,
            "unpriced": self.without,
        }


def _join(texts: Iterable[str], separator: str = "; ") -> str:
    """Distinct texts in a line."""
    return separator.join(dict.fromkeys(filter(None, texts)))


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _add(prices: Sequence[Price]) -> Price:
    """Price of runs together: CPU time and disk add up, memory is the largest."""
    cpu = sum(price.cpu for price in prices)
    memory = _known(price.mib for price in prices)
    disk = _known(price.megabytes for price in prices)
    return Price(
        cpu=cpu,
        mib=max(memory, default=None),
        megabytes=sum(disk) if disk else None,
        source=_join((price.source for price in prices), ", "),
        spread=sum(price.cpu * price.spread for price in prices) / cpu if cpu else 1.0,
        note=_join(price.note for price in prices),
    )


def sum_prices(name: str, runs: Sequence[FrozenRun], listed: PriceList, jobs: int) -> PricedRow:
    """A line for several runs, of which some may have no price."""
    prices = [listed.prices[run.signature] for run in runs]
    good = [price for price in prices if not price.error]
    price = replace(_add(good), error=_join(price.error for price in prices))
    seconds = [s for run in runs if not math.isnan(s := listed.seconds_of(run))]
    return PricedRow(name, len(runs), price, makespan([], seconds, jobs), len(runs) - len(good))


def list_rows(runs: Sequence[FrozenRun], listed: PriceList, jobs: int) -> list[PricedRow]:
    """A line for each row of a study, in its order, and one for all."""
    rows: dict[str, list[FrozenRun]] = {}
    for run in runs:
        rows.setdefault(run.row, []).append(run)
    lines = [sum_prices(name, members, listed, jobs) for name, members in rows.items()]
    total = sum_prices("all", runs, listed, jobs)
    return [*lines, replace(total, price=replace(total.price, note="", error=""))]


def _describe_cpu(price: Price) -> str:
    """CPU time, with its range where the price is known to vary."""
    text = describe_seconds(price.cpu)
    if price.spread < KEPT_APART:
        return text
    low, high = price.cpu / price.spread, price.cpu * price.spread
    return f"{text} ({describe_seconds(low)} to {describe_seconds(high)})"


def describe_seconds(seconds: float) -> str:
    """A time in the unit in which it is said, without ``about``."""
    return words(seconds).removeprefix("about ")


HEADER = ("", "runs", "CPU time", "time", "MiB a process", "disk, MB", "price is", "")


def to_cells(line: PricedRow) -> tuple[str, ...]:
    """Cells of one line of the table."""
    price = line.price
    if line.without == line.runs:
        why = f"error: {price.error}" if price.error else ""
        return (line.name, str(line.runs), "–", "–", "–", "–", "", why)
    sources = [SOURCES.get(source, source) for source in price.source.split(", ")]
    remarks = [price.note]
    if line.without:
        remarks.append(": ".join(filter(None, [f"{line.without} without a price", price.error])))
    return (
        line.name,
        str(line.runs),
        _describe_cpu(price),
        describe_seconds(line.wall),
        "–" if price.mib is None else f"{price.mib:.0f}",
        "–" if price.megabytes is None else f"{price.megabytes:.1f}",
        ", ".join(sources),
        "; ".join(filter(None, remarks)),
    )


def show_search(listed: PriceList) -> None:
    """One line: the number of prices by source, and what the probes took."""
    counts = Counter("error" if p.error else p.source for p in listed.prices.values())
    parts = [f"{counts[s]} {text}" for s, text in SOURCES.items() if counts[s]]
    took = f"; {listed.probes} probes took {listed.seconds:.0f} s" if listed.probes else ""
    out.print(f"prices   runs: {', '.join(parts)}{took}")
