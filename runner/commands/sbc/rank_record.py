"""Record of a calibration: the config and the ranks of each fitted data set; their table, verdict,
scores and figures."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from components.metrics.rank_uniformity import RankSummary, summarise, worst_p
from runner.catalogue.settings import Values, sign
from runner.commands.sbc.fits import RankSettings, Row
from runner.disk.atomic import replace_file, write_text
from runner.disk.lock import try_lock
from runner.errors import ConfigError
from runner.record.lines import read_lines

FOLDER = "sbc"  # below the output folder
RANKS = "ranks.jsonl"
FACTS = "sbc.json"


def name_folder(config: Values, data: str, settings: RankSettings) -> str:
    """``<inference>-<model>-<dataset>-<hash>``, with a hash of everything that determines the ranks."""
    text = json.dumps([sign(config, data), asdict(settings)])
    chosen = [config[role]["name"] for role in ("inference", "model", "dataset")]
    return "-".join([*chosen, hashlib.sha256(text.encode()).hexdigest()[:12]])


@contextmanager
def open_ranks(folder: Path, facts: Values, fresh: bool) -> Iterator[dict[int, Row]]:
    """Existing rows by data set; within the context this process has exclusive access to the folder.

    Raises:
        ConfigError: another process has access.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = try_lock(folder / ".lock")
    if lock is None:
        raise ConfigError(
            f"{folder}: another process is running this calibration; wait for it to end"
        )
    with lock:
        if fresh:
            (folder / RANKS).unlink(missing_ok=True)
        write_text(folder / FACTS, json.dumps(facts, indent=1) + "\n")
        rows = read_rows(folder)
        # drops a last line truncated by a crash
        write_text(folder / RANKS, "".join(json.dumps(row) + "\n" for row in rows.values()))
        yield rows


def read_rows(folder: Path) -> dict[int, Row]:
    """Rows by data set; truncated lines are skipped."""
    return {row["data_set"]: row for row in read_lines(folder, RANKS, {"data_set": int})}


def add_row(folder: Path, row: Row) -> None:
    """Append a row and flush it to disk."""
    with (folder / RANKS).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())


LEVEL = 0.01  # significance level of the joint test of all quantities
HEADER = ("quantity", "p (χ²)", "p (KS)", "spread", "coverage of 90 %", "verdict")
SEED = 1


@dataclass(frozen=True)
class RankResults:
    """Ranks [R] of each quantity, and the failed data sets."""

    ranks: dict[str, np.ndarray]
    draws: int
    bins: int
    errors: dict[int, str]  # data set -> why its fit failed

    @classmethod
    def of_rows(cls, rows: Iterable[Row], draws: int, bins: int) -> RankResults:
        """Build results from the rows of a record, in the order of data sets."""
        ordered = sorted(rows, key=lambda row: int(row["data_set"]))
        done = [row["ranks"] for row in ordered if "ranks" in row]
        names = [name for name in (done[0] if done else {}) if all(name in fit for fit in done)]
        ranks = {name: np.array([fit[name] for fit in done], dtype=int) for name in names}
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
        """Bonferroni-corrected smallest p of all quantities and both tests."""
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
        """Verdict in one line, and failed fits in another."""
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


def write_results(folder: Path, results: RankResults) -> None:
    """Write ``scores.csv`` and the two figures."""
    from components.figures.labels import readable
    from components.figures.samples.calibration import calibration_figures

    rows = {name: [*summary, summary.verdict] for name, summary in results.summaries.items()}
    columns = [*RankSummary._fields, "verdict"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    write_text(folder / "scores.csv", table.to_csv(index_label="quantity"))
    rng = np.random.default_rng(SEED)
    figures = calibration_figures(results.ranks, results.draws, results.bins, rng)
    for name, figure in figures.items():
        with replace_file(folder / f"{name}.png") as temporary:
            readable(figure).savefig(temporary, format="png", dpi=150)
