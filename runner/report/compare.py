"""``runner compare``: differences between recorded runs, and their results side by side, from the
records on disk."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

from components.metrics.names import better
from runner.errors import ConfigError
from runner.record.facts import ScoreLists, skip_unreadable
from runner.report.compared_record import ComparedRecord, load
from runner.report.comparison import ABSENT, Comparison, Number, PairTest, Records, are_paired
from runner.report.exchange.opened import find_in, find_records, is_archive
from runner.statistics.standard_error import mean_se
from runner.terminal.arguments import Parser, add_output_dir
from runner.terminal.streams import is_terminal
from runner.terminal.tables import indent_below, print_json, print_table

if TYPE_CHECKING:
    import pandas as pd


class ComparedValues(TypedDict):
    """A fact or a setting by run."""

    section: Literal["run", "config"]
    name: str
    values: dict[str, str]


class ComparedScore(TypedDict):
    """A score of a run, over its replicates."""

    section: Literal["score"]
    metric: str
    run: str
    mean: Number
    se: Number
    n: float


class ComparedPair(PairTest):
    """Test of a pair of runs."""

    section: Literal["difference"]


class ModelEvidence(TypedDict):
    """Posterior probability of a model, over the replicates of its run."""

    section: Literal["evidence"]
    run: str
    mean: float
    se: Number
    n: int


class Note(TypedDict):
    """Reason why results are not comparable."""

    section: Literal["note"]
    note: str


Compared = ComparedValues | ComparedScore | ComparedPair | ModelEvidence | Note
SIDE_BY_SIDE = 4  # runs; tables of more have a row for each


def main(argv: list[str]) -> int:
    """Print the differences between runs and their results; return exit code 0."""
    parser = Parser(
        description="Shows the differences between recorded runs (configuration, data, code, "
        "versions), and their results side by side: mean ± standard error over replicates (on a "
        "terminal ↑ marks scores to maximise, ↓ scores to minimise), "
        "and the difference of each from the first where replicates are paired (the same seed and data), with p of "
        "the two-sided signed-rank test of five or more pairs, "
        "corrected for their number (Holm) where several runs are compared. For runs of one replicate "
        "under attack, shows p of McNemar's exact test over the test labels that only one of them "
        "predicts correctly. If two or more paired runs have the score log_evidence, shows the "
        "posterior probabilities of their models at equal prior odds.",
        epilog="Reads the records on disk, and does not need MLflow. In a pipe or file, rows are tab-separated: "
        "section, name, one column for each run. Exit code 0, or 2 for a run that cannot be found.",
    )
    parser.add_argument(
        "run",
        nargs="+",
        help="folder of a run, or the beginning of its signature, two or more; or archives of studies: "
        "all their runs, or only runs with the signatures that follow",
    )
    add_output_dir(parser, must_exist=True)
    parser.add_argument(
        "--all",
        action="store_true",
        help="show all keys of the configurations, not only the differences",
    )
    arguments = parser.parse(argv)
    if len(arguments.run) < 2 and not is_archive(arguments.run[0]):
        raise ConfigError(f"compare: give two runs or more, not {len(arguments.run)}")
    names, folders = find_records(arguments.run, arguments.output_dir)
    runs = _readable(names, folders)
    records: dict[str, ComparedRecord] = {}
    for run in runs:  # the same run may be in several archives
        again = sum(label.partition(" ")[0] == run.label for label in records)
        records[f"{run.label} {again + 1}" if again else run.label] = run
    first, *others = records
    comparison = Comparison.of(records, first, arguments.all)
    if arguments.json:
        print_json(_list_objects(comparison, model_probabilities(records)))
        return 0
    results = results_table(comparison.scores)
    differences = differences_table(comparison)
    if is_terminal(sys.stdout):
        results = results.rename(index=_add_arrow)
        differences = differences.rename(index=_add_arrow)
    empty = "none has a result yet"
    _print("run", comparison.facts)
    _print("config", comparison.settings, "no difference")
    differences = differences[(differences != ABSENT).any(axis=1)]
    if len(differences) and len(others) == 1:  # one column more
        results = results.assign(difference=differences[others[0]]).fillna(ABSENT)
    _print("result", results, empty)
    if len(differences) and len(others) > 1:
        _print(f"less {first}", differences)
    evidence = evidence_table(records)
    if len(evidence):
        _print("evidence", evidence)
    for line in comparison.notes:
        print(indent_below("note: ", line), file=sys.stderr)
    return 0


def _list_objects(comparison: Comparison, evidence: ScoreLists) -> Iterator[Mapping[Any, Any]]:
    """Objects for JSON: facts and settings by run, scores, tests of pairs, posterior probabilities
    of models, and notes."""
    for section, table in (("run", comparison.facts), ("config", comparison.settings)):
        for name, values in table.to_dict("index").items():
            yield {"section": section, "name": name, "values": values}
    scores: Any = comparison.scores.stack(0, future_stack=True)
    for score in scores.rename_axis(["metric", "run"]).reset_index().to_dict("records"):
        yield {"section": "score", **score}
    for test in comparison.tests.to_dict("records"):
        yield {"section": "difference", **test}
    for label, cell in evidence.items():
        mean, se = mean_se(cell)
        yield {"section": "evidence", "run": label, "mean": mean, "se": se, "n": len(cell)}
    for note in comparison.notes:
        yield {"section": "note", "note": note}


def _readable(names: list[str], folders: list[Path]) -> list[ComparedRecord]:
    """Readable runs, finished ones first; others are reported in a line.

    Raises:
        ConfigError: fewer than two runs are readable, or one is damaged or missing."""
    runs = []
    for name in names:
        with skip_unreadable(Path(name)):
            runs.append(load(find_in(name, folders)))
    if len(runs) < 2:
        raise ConfigError(
            f"compare: {len(runs)} of {len(names)} runs can be read; give at least two readable runs"
        )
    return sorted(runs, key=lambda run: run.facts["state"] != "done")


def _add_arrow(metric: str) -> str:
    """Name of a score with its direction, for a terminal."""
    return metric + {"higher": " ↑", "lower": " ↓", None: ""}[better(metric)]


def _print(name: str, table: pd.DataFrame, empty: str = "") -> None:
    """Print a section: a line for each row of a table of texts."""
    is_shown = sys.stdout.isatty()
    if is_shown and len(table.columns) > SIDE_BY_SIDE:
        table = table.T.replace(ABSENT, "")
    rows = [list(row) for row in table.itertuples(name=None) if any(row[1:])]
    if is_shown and not rows:
        print(f"{name}: {empty}")
        return
    header = ("", *table.columns)
    print_table(name, header, rows if is_shown else [[name, *row] for row in rows])


def results_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Table of mean ± SE as text: a row per metric, a column per run; ``scores`` as in
    ``Comparison``."""
    import pandas as pd

    runs = scores.columns.unique(0)
    texts = {run: [_format_score(*cell) for cell in scores[run].to_numpy()] for run in runs}
    return pd.DataFrame(texts, index=scores.index)


def _format_score(mean: float, se: float, n: float) -> str:
    if not n:
        return ABSENT
    return f"{mean:.4g} ± {se:.4g} (n={n:.0f})" if n > 1 else f"{mean:.4g}"


def differences_table(comparison: Comparison) -> pd.DataFrame:
    """Table of differences from the first run as text, with p: a row per metric, a column per other
    run."""
    first, *others = comparison.facts
    tests = comparison.tests[comparison.tests["a"] == first]
    texts = [_format_test(test, len(others)) for _, test in tests.iterrows()]
    table = tests.assign(text=texts).pivot(index="metric", columns="b", values="text")
    return table.reindex(index=comparison.scores.index, columns=others).fillna(ABSENT)


def _format_test(test: pd.Series[Any], n_tests: int) -> str:
    text = f"{test.difference:.4g}"
    if test.n > 1:
        text += f" ± {test.se:.4g} (paired)"
    if math.isnan(test.p):
        return text
    corrected = f" (Holm {test.p_holm:.2g})" if n_tests > 1 else ""
    return f"{text}, {'McNemar p' if test.n == 1 else 'p'} {test.p:.2g}{corrected}"


def model_probabilities(records: Records) -> ScoreLists:
    """p(M | y) ∝ p(y | M) of each replicate, for the models of paired runs with a log evidence and
    equal prior probabilities; empty for fewer than two runs."""
    from scipy.special import softmax

    first = next(iter(records.values()))
    logs = {
        label: run.result["log_evidence"]
        for label, run in records.items()
        if run.result.get("log_evidence") and are_paired(first, run)
    }
    if len(logs) < 2 or len({len(values) for values in logs.values()}) > 1:
        return {}
    return dict(zip(logs, softmax(list(logs.values()), axis=0).tolist(), strict=True))


def evidence_table(records: Records) -> pd.DataFrame:
    """Probabilities of models as text: mean ± SE over replicates with different data."""
    import pandas as pd

    shares = model_probabilities(records)
    if not shares:
        return pd.DataFrame()
    cells = {label: shares.get(label, []) for label in records}
    texts = {label: _format_score(*mean_se(cell), len(cell)) for label, cell in cells.items()}
    return pd.DataFrame(texts, index=["p(model | y)"])
