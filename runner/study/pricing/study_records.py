"""Costs of earlier runs, from their records in a study's output folder.

A run is like another of the same experiment and components (smoke runs are like smoke runs); its
seconds grow with steps times replicates.  It is equal to one whose config differs only in seeds,
and in replicates that come one after the other.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from runner.compose.settings import signed_config
from runner.errors import ConfigError
from runner.record.facts import CHOSEN_ROLES
from runner.record.summaries import RecordSummary, read_summaries
from runner.study.pricing.price import RECORD_SPREAD, ROUGH_SPREAD, MeasuredRun, Price, price_run
from runner.study.snapshot import FrozenRun, Snapshot

# keys outside the identity of a run that change its cost
COSTLY_KEYS = ("figures", "keep_predictions")
Kind = tuple[Any, ...]  # features shared by similar runs


def size(config: Mapping[str, Any]) -> float:
    """Steps of all replicates; the replicates of a run without a number of steps."""
    return float(config.get("replicates", 1)) * float(config.get("steps") or 1)


def kind_of_run(run: FrozenRun) -> Kind:
    """Features of a run that similar ones share."""
    roles = [run.config.get(role) for role in CHOSEN_ROLES]
    names = (role["name"] if isinstance(role, dict) else None for role in roles)
    return run.experiment, *names, bool(run.config.get("smoke")), bool(run.config.get("steps"))


def kind_of_record(experiment: str, summary: RecordSummary) -> Kind:
    """``kind_of_run`` of a recorded run."""
    names = (summary.choice.get(role) for role in CHOSEN_ROLES)
    return experiment, *names, summary.smoke, summary.has_steps


def cost_key(config: Mapping[str, Any], data: str) -> str:
    """Identity of runs of equal cost: the signed config without seed and replicates."""
    signed = signed_config(dict(config))
    kept = {k: v for k, v in signed.items() if k not in ("seed", "replicates")}
    costly = {key: config.get(key) for key in COSTLY_KEYS}
    return json.dumps([kept, costly, data], sort_keys=True, default=str)


class StudyRecords:
    """Records of the experiments of some runs that are done, read once."""

    def __init__(self, snapshot: Snapshot, runs: Iterable[FrozenRun]):
        self.rates: defaultdict[Kind, list[float]] = defaultdict(list)  # seconds a unit of size
        self.records: defaultdict[Kind, list[Path]] = defaultdict(list)
        self._measured: dict[Path, MeasuredRun | None] = {}
        for experiment in {run.experiment for run in runs}:
            self._load(snapshot.output_dir / experiment)

    def _load(self, folder: Path) -> None:
        for name, summary in read_summaries(folder).items():
            if summary.state != "done":
                continue
            kind = kind_of_record(folder.name, summary)
            self.records[kind].append(folder / name)
            if summary.rate is not None:
                self.rates[kind].append(summary.rate)

    def add(self, run: FrozenRun, seconds: float) -> None:
        """Adds the time of a run that has ended."""
        self.rates[kind_of_run(run)].append(seconds / size(run.config))

    def seconds(self, run: FrozenRun) -> float | None:
        """Expected time of a run, from similar ones; None without any."""
        rates = self.rates.get(kind_of_run(run))
        return statistics.median(rates) * size(run.config) if rates else None

    def price(self, run: FrozenRun) -> Price | None:
        """Price of a run, the median over equal ones; None without any."""
        key = cost_key(run.config, run.data)
        prices = [
            price_run(run.config, [one], source="record", spread=RECORD_SPREAD)
            for one in map(self._read, self.records.get(kind_of_run(run), []))
            if one is not None
            and cost_key(one.config, one.facts["data"]) == key
            and one.units(one.config) == one.units(run.config)
        ]
        prices.sort(key=lambda price: price.cpu)
        return prices[(len(prices) - 1) // 2] if prices else None

    def rough_price(self, run: FrozenRun) -> Price:
        """Price from the time of similar runs, with other settings."""
        seconds = self.seconds(run)
        if seconds is None:
            return Price(error="no record is like it; leave --no-probe out to measure it")
        note = "from records of the same components with other settings"
        return Price(cpu=seconds, source="rough", spread=ROUGH_SPREAD, note=note)

    def _read(self, folder: Path) -> MeasuredRun | None:
        """A record, read once; None if its config is damaged."""
        if folder not in self._measured:
            self._measured[folder] = None
            with suppress(ConfigError):
                self._measured[folder] = MeasuredRun.read(folder)
        return self._measured[folder]
