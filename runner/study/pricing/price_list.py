"""Price list of a study by row, with the price of each run from a record or a probe."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from typing_extensions import TypedDict

from runner.study.pricing.price import Prices
from runner.study.pricing.probes import measure_runs
from runner.study.pricing.study_records import StudyRecords, cost_key, format_seconds, makespan
from runner.study.snapshot import FrozenRun, Snapshot
from runner.terminal.tables import print_named

SOURCES = {
    "record": "from records",
    "probe": "from probes",
    "rough": "rough",
    "error": "without a price",
}
KEPT_APART = 1.4  # smallest ratio of upper end to CPU time for which a range is printed


class Line(TypedDict):
    """A line of the list: several runs, and the sums of their prices."""

    row: str
    runs: int
    cpu_seconds: float
    cpu_seconds_low: float
    cpu_seconds_high: float
    wall_seconds: float
    peak_mib: int | None  # of the largest process
    disk_mb: float | None
    source: str
    note: str
    error: str
    unpriced: int


def price_runs(
    snapshot: Snapshot,
    runs: Sequence[FrozenRun],
    jobs: int,
    seconds: float | None,
    ends: float = math.inf,
) -> Prices:
    """Prices of runs by signature, from records of equal runs or else from probes.

    A probe takes ``seconds`` and serves all runs of equal cost.  Without probes (None), records of
    the same components are used.  No probe begins after ``ends`` on the monotonic clock."""
    records = StudyRecords(snapshot, runs)
    prices = {run.signature: price for run in runs if (price := records.price(run))}
    open_runs = [run for run in runs if run.signature not in prices]
    if seconds is None:
        return prices | {run.signature: records.rough_price(run) for run in open_runs}
    keys = {
        run.signature: (run.experiment, cost_key(run.config, run.data), run.config["replicates"])
        for run in open_runs
    }
    probed = {keys[run.signature]: run for run in open_runs}
    found = measure_runs(snapshot, list(probed.values()), jobs, seconds, ends)
    return prices | {signature: found[probed[key].signature] for signature, key in keys.items()}


def group_by_row(runs: Sequence[FrozenRun]) -> dict[str, list[FrozenRun]]:
    """Runs of each row of a study."""
    rows = defaultdict[str, list[FrozenRun]](list)
    for run in runs:
        rows[run.row].append(run)
    return rows


def list_rows(runs: Sequence[FrozenRun], prices: Prices, jobs: int) -> list[Line]:
    """A line for each row of a study, in its order, and a line for the total."""
    rows = group_by_row(runs).items()
    lines = [_sum_prices(name, members, prices, jobs) for name, members in rows]
    return [*lines, _sum_prices("all", runs, prices, jobs) | {"note": "", "error": ""}]


def _sum_prices(name: str, runs: Sequence[FrozenRun], prices: Prices, jobs: int) -> Line:
    """Total of several runs: the sum of CPU time and disk, and the memory of the largest process."""
    every = [prices[run.signature] for run in runs]
    good = [price for price in every if not price.error]
    memory = [price.mib for price in good if price.mib is not None]
    disk = [price.megabytes for price in good if price.megabytes is not None]
    seconds = [prices[run.signature].wall(run.config) for run in runs]
    return {
        "row": name,
        "runs": len(runs),
        "cpu_seconds": round(sum(price.cpu for price in good), 1),
        "cpu_seconds_low": round(sum(price.cpu / price.spread for price in good), 1),
        "cpu_seconds_high": round(sum(price.cpu * price.spread for price in good), 1),
        "wall_seconds": round(makespan([], seconds, jobs), 1),
        "peak_mib": round(max(memory)) if memory else None,
        "disk_mb": round(sum(disk), 3) if disk else None,
        "source": ", ".join(dict.fromkeys(price.source for price in good)),
        "note": "; ".join(dict.fromkeys(price.note for price in good if price.note)),
        "error": "; ".join(dict.fromkeys(price.error for price in every if price.error)),
        "unpriced": len(every) - len(good),
    }


HEADER = ("", "runs", "CPU time", "time", "MiB per process", "disk, MB", "source", "")


def to_cells(line: Line) -> tuple[str, ...]:
    """Cells of a line of the table."""
    unpriced = line["unpriced"]
    if unpriced == line["runs"]:
        why = f"error: {line['error']}" if line["error"] else ""
        return (line["row"], str(unpriced), "–", "–", "–", "–", "", why)
    seconds = (line["cpu_seconds"], line["cpu_seconds_low"], line["cpu_seconds_high"])
    cpu, low, high = map(format_seconds, seconds)
    is_wide = line["cpu_seconds_high"] >= KEPT_APART * line["cpu_seconds"]
    remarks = [line["note"]]
    if unpriced:
        remarks.append(": ".join(filter(None, [f"{unpriced} without a price", line["error"]])))
    return (
        line["row"],
        str(line["runs"]),
        f"{cpu} ({low} to {high})" if is_wide else cpu,
        format_seconds(line["wall_seconds"]),
        "–" if line["peak_mib"] is None else str(line["peak_mib"]),
        "–" if line["disk_mb"] is None else f"{line['disk_mb']:.1f}",
        ", ".join(SOURCES[source] for source in line["source"].split(", ")),
        "; ".join(filter(None, remarks)),
    )


def show_search(prices: Prices, seconds: float) -> None:
    """Print the number of prices by source and the time needed to find them."""
    counts = Counter("error" if price.error else price.source for price in prices.values())
    parts = [f"{counts[source]} {text}" for source, text in SOURCES.items() if counts[source]]
    print_named("prices", f"runs: {', '.join(parts)}; found in {seconds:.0f} s")
