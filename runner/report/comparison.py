"""Rows of a comparison of runs: what differs, scores, differences, and reasons why they do not
compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from components.metrics.names import better, without_costs
from runner.record.checks import failed_checks, verdict
from runner.record.code import has_changes
from runner.record.outcomes import McNemar, compare_outcomes
from runner.report.compared_record import ComparedRecord, describe_machine
from runner.statistics.standard_error import mean_se

if TYPE_CHECKING:
    from runner.statistics.paired_tests import PairedDifference

ABSENT = "—"
Row = list[str]


def _code(facts: dict[str, Any]) -> str:
    git = facts.get("git") or {}
    sha: str = git.get("sha", "")
    return sha[:8] + (" + changes" if has_changes(git) else "")


FACTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "state": lambda f: f["state"],
    "data": lambda f: str(f.get("data")),
    "experiment": lambda f: str(f.get("experiment")),
    "checks": lambda f: verdict(f) or ABSENT,
    "ended": lambda f: str(f.get("ended") or ABSENT),
    "took": lambda f: f"{f.get('seconds') or 0:.1f} s",
    "code": _code,
    "threads": lambda f: str(f.get("threads")),
    "processor": lambda f: describe_machine(f.get("hardware") or {}),
}
ALWAYS_SHOWN_FACTS = ("state", "data", "took")


def fact_rows(runs: list[ComparedRecord]) -> list[Row]:
    """State, data and duration, and the other facts that differ."""
    table = {name: [getter(run.facts) for run in runs] for name, getter in FACTS.items()}
    versions = [run.facts.get("versions") or {} for run in runs]
    for package in sorted({package for each in versions for package in each}):
        table[package] = [str(each.get(package, ABSENT)) for each in versions]
    return [
        [name, *values]
        for name, values in table.items()
        if name in ALWAYS_SHOWN_FACTS or len(set(values)) > 1
    ]


def config_rows(runs: list[ComparedRecord], everything: bool) -> list[Row]:
    """Keys with different values (or all keys), in the order of the first config with them."""
    keys = dict.fromkeys(key for run in runs for key in run.config)
    rows = [[key, *(run.config.get(key, ABSENT) for run in runs)] for key in keys]
    return [row for row in rows if everything or len(set(row[1:])) > 1]


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else str(value)


def _cell(values: list[float] | None) -> str:
    if not values:
        return ABSENT
    mean, se = mean_se(values)
    return (
        f"{_number(mean)} ± {_number(se)} (n={len(values)})" if len(values) > 1 else _number(mean)
    )


def are_paired(a: ComparedRecord, b: ComparedRecord) -> bool:
    """True if replicate r of both runs saw the same data and the same random streams."""
    return (a.facts["seed"], a.facts["data"]) == (
        b.facts["seed"],
        b.facts["data"],
    ) and None is a.step is b.step


def difference(a: list[float], b: list[float], paired: bool) -> str:
    """b − a: mean ± SE, over pairs where replicates are paired, otherwise √(SE_a² + SE_b²)."""
    if paired and len(a) == len(b) > 1:
        mean, se = mean_se([y - x for x, y in zip(a, b, strict=True)])
        return f"{_number(mean)} ± {_number(se)} (paired)"
    (mean_a, se_a), (mean_b, se_b) = mean_se(a), mean_se(b)
    text = _number(mean_b - mean_a)
    return text if len(a) == 1 or len(b) == 1 else f"{text} ± {_number(math.hypot(se_a, se_b))}"


def rows_test(a: ComparedRecord, b: ComparedRecord, metric: str) -> McNemar | None:
    """McNemar's test over test labels of two runs of one replicate each that are paired; None: they
    do not keep them."""
    is_unreplicated = all(len(run.result.get(metric) or ()) == 1 for run in (a, b))
    return (
        compare_outcomes(a.folder, b.folder, metric)
        if is_unreplicated and are_paired(a, b)
        else None
    )


def metrics_of(runs: Iterable[ComparedRecord]) -> list[str]:
    """All metrics that a run has, headline metrics first."""
    return sorted(
        dict.fromkeys(name for run in runs for name in without_costs(run.result)),
        key=lambda name: "/" in name,
    )


def directions(rows: list[Row]) -> list[Row]:
    """The rows with the direction of each score next to its name, for display at a terminal."""
    arrows = {"higher": " ↑", "lower": " ↓", None: ""}
    return [[f"{name}{arrows[better(name)]}", *cells] for name, *cells in rows]


def result_rows(runs: list[ComparedRecord]) -> list[Row]:
    """Each metric's mean ± SE in every run."""
    return [[name, *(_cell(run.result.get(name)) for run in runs)] for name in metrics_of(runs)]


def difference_rows(runs: list[ComparedRecord]) -> list[Row]:
    """Each metric's difference of every run from the first; where replicates are paired and five or
    more, p of the two-sided signed-rank test, and of several runs also p after Holm's correction
    for their number; of single replicates p of McNemar's exact test, where the outcomes of test
    labels are kept."""
    first, *others = runs
    rows = []
    for name in metrics_of(runs):
        a = first.result.get(name) or []
        pairs = _test_pairs(first, others, name)
        row = [name]
        for run in others:
            b = run.result.get(name) or []
            text = difference(a, b, are_paired(first, run)) if a and b else ABSENT
            if exact := rows_test(first, run, name):
                text += f", {exact}"
            pair = pairs.get(run.label)
            if pair is not None and not math.isnan(pair.p):
                after = f" (Holm {pair.p_holm:.2g})" if len(pairs) > 1 else ""
                text += f", p {pair.p:.2g}{after}"
            row.append(text)
        rows.append(row)
    return rows


def _test_pairs(
    first: ComparedRecord, others: list[ComparedRecord], metric: str
) -> dict[str, PairedDifference]:
    """Signed-rank tests of runs with the same replicates as the first, by label."""
    from runner.statistics.paired_tests import compare, holm, scores_by_replicate

    a = first.result.get(metric) or []
    tested = {}
    for run in others:
        b = run.result.get(metric) or []
        if are_paired(first, run) and len(a) == len(b) > 1:
            tested[run.label] = compare(scores_by_replicate(b), scores_by_replicate(a))
    return holm(tested)


def evidence_rows(runs: list[ComparedRecord]) -> list[Row]:
    """p(M | y) ∝ p(y | M) of the models of paired runs that have a log evidence, of equal
    probability before the data: mean ± SE over replicates, each of data of its own; nothing where
    fewer than two have one."""
    own = {
        run.label: run.result["log_evidence"]
        for run in runs
        if run.result.get("log_evidence") and are_paired(runs[0], run)
    }
    if len(own) < 2 or len({len(values) for values in own.values()}) > 1:
        return []
    by_replicate = []
    for logs in zip(*own.values(), strict=True):
        largest = max(logs)
        shares = [math.exp(value - largest) for value in logs]
        by_replicate.append([share / sum(shares) for share in shares])
    shares_by_run = zip(*by_replicate, strict=True)
    cells = {label: _cell(list(p)) for label, p in zip(own, shares_by_run, strict=True)}
    return [["p(model | y)", *(cells.get(run.label, ABSENT) for run in runs)]]


def warnings(runs: list[ComparedRecord]) -> list[str]:
    """Warnings that the results are not directly comparable."""
    messages = []
    data = list(dict.fromkeys(run.facts["data"] for run in runs))
    if len(data) > 1:
        messages.append(f"different data ({', '.join(data)}): the results do not compare")
    if len({bool(run.facts.get("smoke")) for run in runs}) > 1:
        messages.append("some are smoke runs (tiny data, few steps): the results do not compare")
    for run in runs:
        if names := failed_checks(run.facts):
            messages.append(
                f"{run.label} failed checks ({'; '.join(names)}): its results are not to be trusted as they are"
            )
        if run.facts["state"] != "done":
            description = "shown is its result" if run.result else "it has no evaluation yet"
            if run.step is not None:
                description = f"shown is its evaluation at step {run.step}"
            messages.append(f"{run.label} is {run.facts['state']}: {description}")
    return messages
