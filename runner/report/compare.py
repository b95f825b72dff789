"""``runner compare``: what differs between recorded runs, and their results side by side, from the
records on disk."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.metrics.names import better, without_costs
from runner.errors import ConfigError
from runner.record.checks import failed_checks, verdict
from runner.record.code import has_changes
from runner.record.facts import load_facts, read_config, skip_unreadable
from runner.record.files import warn_damage
from runner.record.lines import readable_lines
from runner.record.outcomes import McNemar, compare_outcomes
from runner.report.exchange.opened import find_in, find_records, is_archive
from runner.statistics.standard_error import mean_se
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.streams import is_terminal
from runner.terminal.tables import print_table

ABSENT = "—"
Row = list[str]


@dataclass(frozen=True)
class ComparedRecord:
    """A record as it is compared: facts, flat config, and one value per replicate of every
    metric."""

    folder: Path
    facts: dict[str, Any]
    config: dict[str, str]
    result: dict[str, list[float]]
    step: int | None  # last evaluation of a run that is not done; None: the result is final

    @property
    def label(self) -> str:
        signature: str = self.facts["signature"]
        return signature[:8]


def flat(values: Any, prefix: str = "") -> dict[str, str]:
    """Dotted keys and values as YAML writes them."""
    out: dict[str, str] = {}
    for key, value in values.items() if isinstance(values, dict) else []:
        if isinstance(value, dict) and value:
            out |= flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = (
                "null"
                if value is None
                else str(value).lower()
                if isinstance(value, bool)
                else str(value)
            )
    return out


def last_evaluation(folder: Path) -> tuple[dict[str, list[float]], int | None]:
    """Metrics of each replicate's last evaluation, and the step of the newest one."""
    lines = [line for line in readable_lines(folder) if line["phase"] != "train"]
    newest = {line["replicate"]: line for line in lines}
    result: dict[str, list[float]] = {}
    for _, line in sorted(newest.items()):
        for name, value in line["metrics"].items():
            result.setdefault(name, []).extend(value if isinstance(value, list) else [value])
    return result, lines[-1]["step"] if lines else None


def load(folder: Path) -> ComparedRecord:
    """A run's record.

    Raises:
        ConfigError: its run.json or config.yaml is damaged.
        PermissionError: this user may not read its run.json.
    """
    hint = "; give the run's own command again"
    try:
        facts = load_facts(folder)
        config = read_config(folder)
    except ConfigError as error:
        raise ConfigError(f"{error}{hint}") from None
    if facts is None:
        raise ConfigError(f"{folder}: its run.json is damaged{hint}")
    warn_damage(folder, facts)
    result, step = (facts["result"], None) if facts.get("result") else last_evaluation(folder)
    return ComparedRecord(folder, facts, flat(config), result, step)


# ---- what differs
# -----------------------------------------------------------------------------------------------------
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
    "processor": lambda f: str(
        (f.get("hardware") or {}).get("gpu") or (f.get("hardware") or {}).get("cpu") or ""
    ),
}
ALWAYS_SHOWN_FACTS = ("state", "data", "took")


def fact_rows(runs: list[ComparedRecord]) -> list[Row]:
    """State, data and duration, and the other facts that differ."""
    table = {name: [getter(run.facts) for run in runs] for name, getter in FACTS.items()}
    versions = sorted({package for run in runs for package in run.facts.get("versions") or {}})
    table |= {
        p: [str((run.facts.get("versions") or {}).get(p, ABSENT)) for run in runs] for p in versions
    }
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


# ---- results
# ----------------------------------------------------------------------------------------------------------
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
    from runner.statistics.paired_tests import compare, holm, scores_by_replicate

    first = runs[0]
    others = runs[1:]
    rows = []
    for name in metrics_of(runs):
        row = [name]
        tested = {}
        a = first.result.get(name)
        for run in others:
            b = run.result.get(name)
            if a and b and are_paired(first, run) and len(a) == len(b) > 1:
                tested[run.label] = compare(scores_by_replicate(b), scores_by_replicate(a))
        corrected = holm(tested)
        for run in others:
            b = run.result.get(name)
            text = difference(a, b, are_paired(first, run)) if a and b else ABSENT
            if exact := rows_test(first, run, name):
                text += f", {exact}"
            pair = corrected.get(run.label)
            if pair is not None and not math.isnan(pair.p):
                after = f" (Holm {pair.p_holm:.2g})" if len(tested) > 1 else ""
                text += f", p {pair.p:.2g}{after}"
            row.append(text)
        rows.append(row)
    return rows


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
    cells = dict(zip(own, (_cell(list(p)) for p in zip(*by_replicate, strict=True)), strict=True))
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
            description = (
                description if run.step is None else f"shown is its evaluation at step {run.step}"
            )
            messages.append(f"{run.label} is {run.facts['state']}: {description}")
    return messages


def main(argv: list[str]) -> int:
    """Compares the runs named; exit code 0, or 2 when one cannot be found or read."""
    parser = Parser(
        prog="runner compare",
        description="Shows what differs between recorded runs (configuration, data, code, versions) and their results "
        "side by side: mean ± standard error over replicates (on a terminal ↑ marks scores that are better the higher, ↓ the "
        "lower), and the difference of each from the first, with p of "
        "the two-sided signed-rank test where replicates are paired (the same seed and data) and five or more, "
        "corrected for their number (Holm) where several runs are compared. Of runs of one replicate under attack, p of "
        "McNemar's exact test over the test labels that one alone predicts rightly. Where two or more paired runs have the "
        "score log_evidence, the posterior probabilities of their models at equal prior odds.",
        epilog="Reads the records on disk, needs no MLflow. Not on a terminal, rows are tab-separated: "
        "section, name, one column for each run. Exit code 0, or 2 for a run that cannot be found.",
    )
    parser.add_argument(
        "run",
        nargs="+",
        help="folder of a run, or the beginning of its signature, two or more; or archives of studies (a path or URL): "
        "all their runs, or those of the signatures that follow",
    )
    add_output_dir(parser, must_exist=True)
    parser.add_argument(
        "--all",
        action="store_true",
        help="show every key of the configurations, not the differences",
    )
    arguments = parser.parse_args(argv[1:])
    if len(arguments.run) < 2 and not is_archive(arguments.run[0]):
        raise ConfigError(f"compare: give two runs or more, not {len(arguments.run)}")
    names, folders = find_records(arguments.run, arguments.output_dir)
    return _compare(names, folders, everything=arguments.all)


def _compare(names: list[str], folders: list[Path], everything: bool) -> int:
    """Print what differs between runs, and their results.

    Raises:
        ConfigError: fewer than two can be read.
    """
    runs = _readable(names, folders)
    labels = [run.label for run in runs]
    config = config_rows(runs, everything)
    _section("run", "", labels, fact_rows(runs))
    _section("config", "no difference" if not config else "", labels, config)
    results = result_rows(runs)
    apart = difference_rows(runs)
    if is_terminal(sys.stdout):
        results = directions(results)
        apart = directions(apart)
    if len(runs) == 2:  # one column more
        _section(
            "result",
            "none has a result yet",
            [*labels, "difference"],
            _side_by_side(results, apart),
        )
    else:
        _section("result", "none has a result yet", labels, results)
        _section(f"less {labels[0]}", "none has a result yet", labels[1:], apart)
    if evidence := evidence_rows(runs):
        _section("evidence", "", labels, evidence)
    for line in warnings(runs):
        print(f"note: {line}", file=sys.stderr)
    return 0


def _readable(names: list[str], folders: list[Path]) -> list[ComparedRecord]:
    """The runs that this user may read, the others named in a line.

    Raises:
        ConfigError: fewer than two are left, or one is damaged or not there."""
    runs = []
    for name in names:
        with skip_unreadable(Path(name)):
            runs.append(load(find_in(name, folders)))
    if len(runs) < 2:
        raise ConfigError(
            f"compare: {len(runs)} of {len(names)} runs can be read; give two or more that can"
        )
    return runs


def _side_by_side(results: list[Row], apart: list[Row]) -> list[Row]:
    return [[*result, *difference[1:]] for result, difference in zip(results, apart, strict=True)]


def _section(name: str, empty: str, labels: list[str], rows: list[Row]) -> None:
    if sys.stdout.isatty() and not rows:
        print(f"{name}: {empty}")
        return
    print_table(
        name, ("", *labels), rows if sys.stdout.isatty() else [[name, *row] for row in rows]
    )
