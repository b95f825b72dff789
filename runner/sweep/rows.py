"""Frame of a sweep: a row for jobs that differ only in the seed, with scores over seeds and
replicates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, NotRequired

from typing_extensions import TypedDict

from runner.record.facts import Facts, ScoreLists, read_facts_or_warn
from runner.record.folders import name_run
from runner.record.scores import final_scores, pool
from runner.statistics.standard_error import mean_columns
from runner.sweep.outcomes import JobOutcome

if TYPE_CHECKING:
    import pandas as pd

SweepRow = TypedDict(
    "SweepRow",
    {
        "seeds": str,
        "n": int,
        "state": str,
        "smoke": bool,
        "best": NotRequired[bool],
        "records": str,
        "failed because": str,
    },
)
# columns that do not distinguish rows
OWN = ("seed", "output_dir", "data_dir", "tracking", "offline", "hydra.sweep.dir")


def describe_states(jobs: Iterable[JobOutcome], counted: bool = False) -> str:
    """States of jobs with their counts; only the state if all are equal, unless ``counted``."""
    counts = Counter(job.state for job in jobs)
    if len(counts) == 1 and not counted:
        return next(iter(counts))
    return ", ".join(f"{n} {state}" for state, n in counts.items())


def sweep_frame(outcomes: Iterable[JobOutcome], best: Facts | None = None) -> pd.DataFrame:
    """One row for each setting, in the order of the first jobs.

    Args:
        outcomes: the jobs.
        best: content of ``best.yaml`` of a search, used to mark the rows of the best trials.

    Returns:
        Columns: keys that differ between rows, seeds, mean and SE of each score, n, state, smoke,
        best (for a search), records, failed because.
    """
    import pandas as pd

    groups = defaultdict[frozenset[tuple[str, str]], list[JobOutcome]](list)
    keys: dict[str, None] = {}
    for outcome in outcomes:
        setting = {
            key: value
            for key, value in outcome.values().items()
            if key not in OWN and not key.startswith("hydra")
        }
        groups[frozenset(setting.items())].append(outcome)
        keys |= dict.fromkeys(setting)
    settings = pd.DataFrame(map(dict, groups), columns=list(keys)).fillna("")
    rows = [_describe_row(jobs, best) for jobs in groups.values()]
    scores, others = (pd.DataFrame(part) for part in zip(*rows, strict=True))
    frame = settings.loc[:, settings.nunique() > 1].join(others[["seeds"]]).join(scores)
    return frame.join(others.drop(columns="seeds"))


def _describe_row(jobs: list[JobOutcome], best: Facts | None) -> tuple[dict[str, float], SweepRow]:
    """Columns of a setting's row: scores over all finished seeds and replicates, and the others."""
    folders = dict.fromkeys(job.folder for job in jobs if job.folder is not None)
    records = {folder: read_facts_or_warn(folder) or {} for folder in folders}
    done = {job.folder for job in jobs if job.state == "done"}
    values = _pool_scores(facts for folder, facts in records.items() if folder in done)
    trials = [set(trial["overrides"]) for trial in best["best"]] if best else []
    failed = (job.message for job in jobs if job.state == "failed")
    row: SweepRow = {
        "seeds": _join_distinct(", ", (job.values().get("seed", "") for job in jobs)),
        "n": max(map(len, values.values()), default=0),
        "state": describe_states(jobs),
        "smoke": any(facts.get("smoke") for facts in records.values()),
        "best": any(trial <= set(job.overrides) for trial in trials for job in jobs),
        "records": " ".join(map(name_run, records)),
        "failed because": _join_distinct("; ", failed),
    }
    if best is None:
        del row["best"]
    return mean_columns(values, " SE"), row


def _pool_scores(records: Iterable[Facts]) -> ScoreLists:
    """Scores over all replicates, without scores of single tasks or classes."""
    pooled = pool(scores for facts in records for scores in final_scores(facts).values())
    return {name: each for name, each in pooled.items() if "/" not in name}


def _join_distinct(separator: str, words: Iterable[str]) -> str:
    return separator.join(filter(None, dict.fromkeys(words)))
