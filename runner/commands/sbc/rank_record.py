"""Record of a calibration: the config, and the ranks of each data set as soon as it is done; their
table, verdict, scores and figures."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from components.metrics.rank_uniformity import RankSummary, summarise, worst_p
from runner.catalogue.settings import sign
from runner.commands.sbc.fits import RankSettings, Row
from runner.disk.atomic import replace_file, write_text
from runner.disk.lock import try_lock
from runner.errors import ConfigError
from runner.record.lines import read_lines

FOLDER = "sbc"  # below the output folder
RANKS = "ranks.jsonl"
FACTS = "sbc.json"


def name_folder(config: dict[str, Any], data: str, settings: RankSettings) -> str:
    """``<inference>-<model>-<dataset>-<hash>``: the hash is of all that ranks depend on."""
    text = json.dumps([sign(config, data), asdict(settings)])
    chosen = [config[role]["name"] for role in ("inference", "model", "dataset")]
    return "-".join([*chosen, hashlib.sha256(text.encode()).hexdigest()[:12]])


@contextmanager
def open_ranks(folder: Path, facts: dict[str, Any], fresh: bool) -> Iterator[dict[int, Row]]:
    """Rows that are there by data set, in a folder to which only this process adds in the context.

    Raises:
        ConfigError: another process adds to it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = try_lock(folder / ".lock")
    if lock is None:
        raise ConfigError(f"{folder}: another process is at this calibration")
    with lock:
        if fresh:
            (folder / RANKS).unlink(missing_ok=True)
        write_text(folder / FACTS, json.dumps(facts, indent=1) + "\n")
        rows = read_rows(folder)
        # a line that a crash cut short must not be continued
        write_text(folder / RANKS, "".join(json.dumps(row) + "\n" for row in rows.values()))
        yield rows


def read_rows(folder: Path) -> dict[int, Row]:
    """Rows by data set; a broken line is left out."""
    return {row["data_set"]: row for row in read_lines(folder, RANKS, {"data_set": int})}


def add_row(folder: Path, row: Row) -> None:
    """Append a row, on the disk when this returns."""
    with (folder / RANKS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())


LEVEL = 0.01  # of the test of all quantities together
HEADER = ("quantity", "p (χ²)", "p (KS)", "spread", "coverage of 90 %", "")
SEED = 1


@dataclass(frozen=True)
class RankResults:
    """Ranks of each quantity [R], and data sets without."""

    ranks: dict[str, np.ndarray]
    draws: int
    bins: int
    errors: dict[int, str]  # data set -> why its fit failed

    @classmethod
    def of_rows(cls, rows: Iterable[Row], draws: int, bins: int) -> RankResults:
        """Results of the rows of a record, in the order of data sets."""
        ordered = sorted(rows, key=lambda row: int(row["data_set"]))
        done = [row["ranks"] for row in ordered if "ranks" in row]
        names = [name for name in (done[0] if done else {}) if all(name in one for one in done)]
        ranks = {name: np.array([one[name] for one in done], dtype=int) for name in names}
        errors = {int(row["data_set"]): str(row["error"]) for row in ordered if "error" in row}
        return cls(ranks, draws, bins, errors)

    @cached_property
    def summaries(self) -> dict[str, RankSummary]:
        rng = np.random.default_rng(SEED)
        return {
            name: summarise(values, self.draws, self.bins, rng)
            for name, values in self.ranks.items()
        }

    @property
    def p(self) -> float:
        """Smallest p of all quantities and both tests, times their number."""
        return worst_p(list(self.summaries.values()))

    @property
    def is_refused(self) -> bool:
        """True if ranks are not uniform at the 1 % level, or a fit failed."""
        return bool(self.errors) or not self.ranks or self.p < LEVEL

    def cells(self) -> list[list[str]]:
        """Rows of the table."""
        return [
            [name, *(f"{v:.3f}" for v in (s.chi2_p, s.ks_p, s.spread, s.coverage90)), s.verdict]
            for name, s in self.summaries.items()
        ]

    def conclude(self) -> str:
        """The verdict in one line, and failed fits in another."""
        lines = []
        if self.ranks:
            tests = 2 * len(self.ranks)
            n = len(next(iter(self.ranks.values())))
            verdict = (
                "REFUSED: ranks are not uniform" if self.p < LEVEL else "no miscalibration seen"
            )
            lines.append(f"{verdict}; smallest p times {tests} tests: {self.p:.2g}, {n} data sets")
        if self.errors:
            first, why = next(iter(self.errors.items()))
            lines.append(f"{len(self.errors)} fits failed (data set {first}: {why})")
        return "\n".join(lines)


def write_results(folder: Path, results: RankResults) -> list[Path]:
    """``scores.csv`` and the two figures: the paths written."""
    from components.figures.labels import readable
    from components.figures.samples.calibration import calibration_figures

    rows = {name: [*one, one.verdict] for name, one in results.summaries.items()}
    columns = [*RankSummary._fields, "verdict"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    paths = [folder / "scores.csv"]
    write_text(paths[0], table.to_csv(index_label="quantity"))
    rng = np.random.default_rng(SEED)
    figures = calibration_figures(results.ranks, results.draws, results.bins, rng)
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        with replace_file(paths[-1]) as temporary:
            readable(figure).savefig(temporary, format="png", dpi=150)
    return paths
