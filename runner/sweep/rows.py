"""Rows of a sweep's table: jobs that differ only in the seed, with scores over seeds and replicates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runner.record.facts import Facts, read_facts_or_warn
from runner.statistics.standard_error import mean_se
from runner.sweep.outcomes import JobOutcome

if TYPE_CHECKING:
    import pandas as pd

# columns that do not distinguish rows
OWN = ("seed", "output_dir", "data_dir", "tracking", "offline", "hydra.sweep.dir")


@dataclass(frozen=True)
class SweepRow:
    """Jobs that differ only in the seed."""

    overrides: dict[str, str]  # keys that differ between rows
    jobs: list[JobOutcome]
    records: dict[Path, Facts]  # facts by folder

    @property
    def seeds(self) -> str:
        seeds = dict.fromkeys(job.values().get("seed", "") for job in self.jobs)
        return ", ".join(filter(None, seeds))

    @property
    def state(self) -> str:
        return describe_states(self.jobs)

    @property
    def is_smoke(self) -> bool:
        """True if a record of the row is of a smoke run."""
        return any(facts.get("smoke") for facts in self.records.values())

    @property
    def marked_state(self) -> str:
        """The state, with a mark on smoke runs."""
        return f"{self.state}, smoke" if self.is_smoke else self.state

    @property
    def failed(self) -> list[JobOutcome]:
        return [job for job in self.jobs if job.state == "failed"]

    @property
    def record_names(self) -> list[str]:
        return [f"{folder.parent.name}/{folder.name}" for folder in self.records]

    @property
    def scores(self) -> dict[str, list[float]]:
        """Values of each score over all seeds and replicates that are done."""
        scores = defaultdict[str, list[float]](list)
        done = {job.folder for job in self.jobs if job.state == "done"}
        for folder in self.records:
            result = self.records[folder].get("result") if folder in done else None
            for name, values in (result or {}).items():
                if "/" not in name:
                    scores[name] += values
        return dict(scores)


def describe_states(jobs: Iterable[JobOutcome], counted: bool = False) -> str:
    """States of jobs and their numbers; the state alone if all have the same, unless ``counted``."""
    counts = Counter(job.state for job in jobs)
    if len(counts) == 1 and not counted:
        return next(iter(counts))
    return ", ".join(f"{n} {state}" for state, n in counts.items())


def read_rows(outcomes: Iterable[JobOutcome]) -> list[SweepRow]:
    """One row for each setting, in the order of the first job that had it."""
    settings = defaultdict[frozenset[tuple[str, str]], list[JobOutcome]](list)
    keys: dict[str, None] = {}
    for outcome in outcomes:
        overrides = {
            key: value
            for key, value in outcome.values().items()
            if key not in OWN and not key.startswith("hydra")
        }
        settings[frozenset(overrides.items())].append(outcome)
        keys |= dict.fromkeys(overrides)
    by_setting = [(dict(setting), jobs) for setting, jobs in settings.items()]
    varied = [key for key in keys if len({values.get(key) for values, _ in by_setting}) > 1]
    return [
        SweepRow({key: values.get(key, "") for key in varied}, jobs, _read_records(jobs))
        for values, jobs in by_setting
    ]


def _read_records(jobs: Iterable[JobOutcome]) -> dict[Path, Facts]:
    folders = dict.fromkeys(job.folder for job in jobs if job.folder is not None)
    return {folder: read_facts_or_warn(folder) or {} for folder in folders}


def score_names(rows: Iterable[SweepRow]) -> list[str]:
    """Names of the scores of some rows, each once."""
    return list(dict.fromkeys(name for row in rows for name in row.scores))


def to_frame(rows: list[SweepRow], best: list[SweepRow]) -> pd.DataFrame:
    """All scores of all rows: mean, SE and number of values of each."""
    import pandas as pd

    names = score_names(rows)
    lines = []
    for row in rows:
        scores = row.scores
        line: dict[str, object] = {**row.overrides, "seeds": row.seeds}
        for name in names:
            mean_and_se = mean_se(scores[name]) if name in scores else (None, None)
            line |= zip((name, f"{name} SE"), mean_and_se, strict=True)
        line["n"] = max(map(len, scores.values()), default=0)
        line |= {"state": row.state, "smoke": row.is_smoke}
        line |= {"best": row in best} if best else {}
        line["records"] = " ".join(row.record_names)
        line["failed because"] = "; ".join(dict.fromkeys(job.message for job in row.failed))
        lines.append(line)
    return pd.DataFrame(lines)
