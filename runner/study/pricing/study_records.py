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
from pathlib import Path
from typing import Any

from runner.compose.settings import signed_config
from runner.errors import ConfigError
from runner.record.facts import CHOSEN_ROLES, read, read_config
from runner.record.index import RecordSummary, read_summaries
from runner.record.usage import MB, folder_bytes
from runner.study.pricing.price import BY_PASS, RECORD_SPREAD, ROUGH_SPREAD, Price
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


def price_from_record(facts: Mapping[str, Any], folder: Path, replicates: int) -> Price | None:
    """Price of a run of equal config and ``replicates``; None: the record lacks part of the cost."""
    done = int(facts["replicates"])
    is_vectorised = bool(facts.get("vectorised"))
    if facts["state"] != "done" or (is_vectorised and done != replicates):
        return None
    share = 1.0 if is_vectorised else replicates / done
    usage = facts.get("usage") or {}
    if usage.get("passes") != (1 if is_vectorised else done):
        return None
    cpu = usage["cpu_seconds"] + (share - 1.0) * sum(usage[phase] for phase in BY_PASS)
    disk = folder_bytes(folder) * share / MB
    return Price(cpu, usage["peak_mib"], disk, "record", RECORD_SPREAD, "")


class StudyRecords:
    """Records of the experiments of some runs that are done, read once."""

    def __init__(self, snapshot: Snapshot, runs: Iterable[FrozenRun]):
        self.rates: defaultdict[Kind, list[float]] = defaultdict(list)  # seconds a unit of size
        self.records: defaultdict[Kind, list[tuple[Path, str]]] = defaultdict(list)  # with data
        self._cost_keys: dict[Path, str] = {}
        for experiment in {run.experiment for run in runs}:
            self._load(snapshot.output_dir / experiment)

    def _load(self, folder: Path) -> None:
        for name, summary in read_summaries(folder).items():
            if summary is None or summary.state != "done":
                continue
            kind = kind_of_record(folder.name, summary)
            self.records[kind].append((folder / name, summary.data))
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
            price
            for folder, data in self.records.get(kind_of_run(run), [])
            if self._cost_key(folder, data) == key
            and (facts := read(folder)) is not None
            and (price := price_from_record(facts, folder, int(run.config["replicates"])))
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

    def _cost_key(self, folder: Path, data: str) -> str:
        """``cost_key`` of a record; empty if its config is damaged."""
        if folder not in self._cost_keys:
            try:
                self._cost_keys[folder] = cost_key(read_config(folder), data)
            except ConfigError:
                self._cost_keys[folder] = ""
        return self._cost_keys[folder]
