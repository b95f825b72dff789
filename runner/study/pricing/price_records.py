"""Prices from records of earlier runs: of equal configs, apart from seeds and from replicates that
come one after the other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.compose.settings import signed_config
from runner.errors import ConfigError
from runner.record.facts import read, read_config
from runner.record.index import read_summaries
from runner.record.usage import MB, folder_bytes
from runner.study.pricing.forecast import Kind, kind, kind_of_record
from runner.study.pricing.price import BY_PASS, RECORD_SPREAD, ROUGH_SPREAD, Price
from runner.study.snapshot import FrozenRun, Snapshot

# what is not in the identity of a run and changes its cost
COSTLY_KEYS = ("figures", "keep_predictions")
Record = tuple[Path, str]  # folder, data


def cost_key(config: Mapping[str, Any], data: str) -> str:
    """Identity of runs of equal cost: the signed config without seed and replicates."""
    signed = signed_config(dict(config))
    kept = {k: v for k, v in signed.items() if k not in ("seed", "replicates")}
    costly = {key: config.get(key) for key in COSTLY_KEYS}
    return json.dumps([kept, costly, data], sort_keys=True, default=str)


def price_from_record(facts: Mapping[str, Any], folder: Path, replicates: int) -> Price | None:
    """Price of a run of equal config and ``replicates``, from a record; None: the record does not
    tell all that its run took."""
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


def _median(prices: list[Price]) -> Price:
    """The price in the middle of several."""
    return sorted(prices, key=lambda price: price.cpu)[(len(prices) - 1) // 2]


class RecordedPrices:
    """Prices of a study's runs from the records in its folder."""

    def __init__(self, snapshot: Snapshot):
        self.snapshot = snapshot
        self._records: dict[str, dict[Kind, list[Record]]] = {}  # by experiment
        self._keys: dict[Path, str] = {}  # of records

    def _load(self, experiment: str) -> dict[Kind, list[Record]]:
        """Records of an experiment that are done, by the kind of their runs."""
        if experiment not in self._records:
            by_kind: dict[Kind, list[Record]] = {}
            folder = self.snapshot.output_dir / experiment
            for name, summary in read_summaries(folder).items():
                if summary is not None and summary.state == "done":
                    place = by_kind.setdefault(kind_of_record(summary)[:-1], [])
                    place.append((folder / name, summary.data))
            self._records[experiment] = by_kind
        return self._records[experiment]

    def _key(self, folder: Path, data: str) -> str:
        if folder not in self._keys:
            try:
                self._keys[folder] = cost_key(read_config(folder), data)
            except ConfigError:
                self._keys[folder] = ""
        return self._keys[folder]

    def price(self, run: FrozenRun) -> Price | None:
        """Price of a run; None: no record is of an equal one."""
        records = self._load(run.experiment).get(kind(run.config)[:-1], [])
        key = cost_key(run.config, run.data)
        replicates = int(run.config["replicates"])
        prices = [
            price
            for folder, data in records
            if self._key(folder, data) == key
            and (facts := read(folder)) is not None
            and (price := price_from_record(facts, folder, replicates)) is not None
        ]
        measured = [price for price in prices if price.mib is not None]
        return _median(measured or prices) if prices else None

    def rough(self, run: FrozenRun, seconds: float | None) -> Price:
        """Price from ``seconds`` of runs of the same components, with other settings."""
        if seconds is None:
            why = "no record is like it; leave --no-probe out to measure it"
            return Price(error=why)
        note = "from records of the same components with other settings"
        return Price(cpu=seconds, source="rough", spread=ROUGH_SPREAD, note=note)
