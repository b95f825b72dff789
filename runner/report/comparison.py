"""Comparison of runs as tables: settings, scores, differences, and reasons why they are not
comparable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from components.metrics.names import without_costs
from runner.catalogue.settings import UNSIGNED_KEYS
from runner.record.checks import failed_checks, verdict
from runner.record.code import describe_commit
from runner.record.facts import Facts
from runner.record.outcomes import compare_outcomes
from runner.report.compared_record import ComparedRecord, describe_machine
from runner.statistics.standard_error import mean_se

if TYPE_CHECKING:
    import pandas as pd

    from runner.statistics.paired_tests import PairedDifference

Records = Mapping[str, ComparedRecord]  # by label
ABSENT = "—"
Number = float | None  # None with --json in place of NaN


class PairTest(TypedDict):
    """Test of the difference of a score between two runs."""

    metric: str
    a: str
    b: str
    difference: Number
    se: Number
    n: int
    p: Number
    p_holm: Number


ALWAYS_SHOWN_FACTS = ("state", "data", "took")


@dataclass(frozen=True)
class Comparison:
    """Comparison of runs; printing it shows settings, scores, tests and notes.

    Example:
        >>> from runner import compare, run
        >>> keys = {"replicates": 2, "smoke": True, "tracking": False}
        >>> wide = run("cavi_probit", "steps=20", **keys)
        >>> narrow = run("cavi_probit", "steps=20", model={"prior_scale": 0.1}, **keys)
        >>> comparison = compare(wide=wide, narrow=narrow)
        >>> comparison.settings
                          wide narrow
        model.prior_scale  1.0    0.1
        >>> comparison.scores["wide"].columns.tolist()
        ['mean', 'se', 'n']
    """

    settings: pd.DataFrame  # config keys that differ: a row per key, a column per run
    # facts in the same form: state, data, time, and differences of code, versions and hardware
    facts: pd.DataFrame
    scores: pd.DataFrame  # a row per metric, columns (run, mean | se | n)
    # for each metric and pair of runs with paired replicates: b − a, its SE, two-sided p
    tests: pd.DataFrame
    notes: tuple[str, ...]  # reasons why the scores are not directly comparable

    @classmethod
    def of(
        cls,
        records: Records,
        reference: str | None = None,
        everything: bool = False,
    ) -> Comparison:
        """Comparison of runs by label.

        Args:
            records: the runs.
            reference: label of the first run of all tested pairs; None for every pair.
            everything: include all keys of the configs in ``settings``.
        """
        return cls(
            settings=settings_table(records, everything),
            facts=facts_table(records),
            scores=scores_table(records),
            tests=make_pair_tests(records, reference),
            notes=tuple(warnings(list(records.values()))),
        )

    def __repr__(self) -> str:
        parts = {"settings": self.settings, "scores": self.scores, "tests": self.tests}
        sections = [f"{name}\n{frame.to_string()}" for name, frame in parts.items() if len(frame)]
        return "\n\n".join([*sections, *(f"note: {note}" for note in self.notes)])


def _vary(table: pd.DataFrame, always: Sequence[str] = ()) -> pd.DataFrame:
    """Rows of a table with different texts, and rows that are always included."""
    return table[(table.nunique(axis=1) > 1) | table.index.isin(list(always))]


def facts_table(records: Records) -> pd.DataFrame:
    """Table of facts with a column per run: state, data, duration, and other facts that differ."""
    import pandas as pd

    facts = {label: _describe_facts(run.facts) for label, run in records.items()}
    return _vary(pd.DataFrame(facts).fillna(ABSENT), ALWAYS_SHOWN_FACTS)


def _describe_facts(facts: Facts) -> dict[str, str]:
    return {
        "state": facts["state"],
        "data": facts["data"],
        "experiment": facts["experiment"],
        "checks": verdict(facts) or ABSENT,
        "ended": str(facts.get("ended") or ABSENT),
        "took": f"{facts['seconds']:.1f} s",
        "code": describe_commit(facts["git"]),
        "threads": str(facts.get("threads")),
        "processor": describe_machine(facts["hardware"]),
        **facts["versions"],
    }


def settings_table(records: Records, everything: bool = False) -> pd.DataFrame:
    """Table of config keys with a column per run, in the order of the first config with them: keys
    with different values that can change a score, or all keys."""
    import pandas as pd

    table = pd.DataFrame({label: run.config for label, run in records.items()}).fillna(ABSENT)
    if everything:
        return table
    return _vary(table[[key.partition(".")[0] not in UNSIGNED_KEYS for key in table.index]])


def make_pair_tests(records: Records, reference: str | None) -> pd.DataFrame:
    """Paired tests, one row per metric and pair of runs that share replicates.

    Columns: difference b − a, its SE, number of pairs, p of the two-sided signed-rank test for five
    or more pairs, and p after Holm's correction for the number of pairs of runs; for single
    replicates p of McNemar's exact test, if the outcomes of test labels are kept.

    Args:
        records: runs by label.
        reference: label of the first run of all pairs; None for every pair of runs.
    """
    import pandas as pd

    from runner.statistics.paired_tests import holm

    runs = list(combinations(records, 2))
    rows = []
    for metric in metrics_of(records.values()):
        pairs = {
            (a, b): pair
            for a, b in runs
            if reference in (None, a)
            and are_paired(records[a], records[b])
            and (pair := _test_pair(records[a], records[b], metric)).n
        }
        for (a, b), pair in holm(pairs).items():
            rows.append((metric, a, b, pair.difference, pair.se, pair.n, pair.p, pair.p_holm))
    return pd.DataFrame(rows, columns=list(PairTest.__annotations__))


def are_paired(a: ComparedRecord, b: ComparedRecord) -> bool:
    """True if replicate r of both runs has the same data and random streams."""
    same = all(a.facts[key] == b.facts[key] for key in ("seed", "data"))
    return same and a.step is None and b.step is None


def _test_pair(a: ComparedRecord, b: ComparedRecord, metric: str) -> PairedDifference:
    from runner.statistics.paired_tests import compare

    of_a, of_b = (dict(enumerate(run.result.get(metric) or ())) for run in (a, b))
    pair = compare(of_b, of_a)
    exact = compare_outcomes(a.folder, b.folder, metric) if len(of_a) == len(of_b) == 1 else None
    return replace(pair, p=exact.p) if exact else pair


def metrics_of(runs: Iterable[ComparedRecord]) -> list[str]:
    """All metrics of the runs, headline metrics first."""
    return sorted(
        dict.fromkeys(name for run in runs for name in without_costs(run.result)),
        key=lambda name: "/" in name,
    )


def scores_table(records: Records) -> pd.DataFrame:
    """Table with a row per metric and columns (run, mean | se | n)."""
    import pandas as pd

    metrics = metrics_of(records.values())
    tables = {}
    for label, run in records.items():
        cells = [run.result.get(metric) or [] for metric in metrics]
        estimates = [(*mean_se(cell), len(cell)) for cell in cells]
        tables[label] = pd.DataFrame(estimates, index=metrics, columns=["mean", "se", "n"])
    return pd.concat(tables, axis=1)


def warnings(runs: list[ComparedRecord]) -> list[str]:
    """Warnings that the results are not directly comparable."""
    messages = []
    data = list(dict.fromkeys(run.facts["data"] for run in runs))
    if len(data) > 1:
        messages.append(f"different data ({', '.join(data)}): the results are not comparable")
    if len({run.facts["smoke"] for run in runs}) > 1:
        messages.append(
            "some are smoke runs (tiny data, few steps): the results are not comparable"
        )
    for run in runs:
        if names := failed_checks(run.facts):
            messages.append(
                f"{run.label} failed checks ({'; '.join(names)}): do not trust its results"
            )
        if run.facts["state"] != "done":
            description = "its result is shown" if run.result else "it has no evaluation yet"
            if run.step is not None:
                description = f"its scores are from the evaluation at step {run.step}"
            messages.append(f"{run.label} is {run.facts['state']}: {description}")
    return messages
