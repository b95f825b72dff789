"""``compare``: differing settings of runs, scores side by side, and paired tests of the scores."""

from __future__ import annotations

from os import PathLike

from runner.errors import ConfigError
from runner.python.result import Result
from runner.report.compared_record import ComparedRecord, load
from runner.report.comparison import Comparison as Comparison
from runner.report.exchange.opened import find_in, find_records, is_archive


def compare(
    *runs: Result | str | PathLike[str],
    output_dir: str | PathLike[str] = "outputs",
    **named: Result | str | PathLike[str],
) -> Comparison:
    """Compare two or more runs: settings, scores, and paired tests of the scores.

    Replicates are paired if runs share seed and data, because they then use the same rows and
    random streams.  Each pair of runs has the mean difference b − a, its standard error and, for
    five or more replicates, the two-sided p of Wilcoxon's signed-rank test; for runs with one
    replicate under attack, the p-value of McNemar's exact test over test labels.  ``p_holm`` is
    Holm-corrected over the pairs of runs of the same metric.

    Args:
        *runs: results of ``run`` or ``load``, folders of records, or prefixes of ids; each
            is named by the prefix of its id.  Archives of studies are searched for ids, or
            contribute all their runs if nothing else is given.
        output_dir: folder of the records, for prefixes.
        **named: runs with explicit names.

    Returns:
        The comparison.

    Raises:
        ConfigError: fewer than two runs, a run does not exist, or two runs have the same name.

    Source: Wilcoxon (1945); McNemar (1947); Holm (1979).

    Example:
        >>> from runner import compare, run
        >>> keys = {"replicates": 2, "smoke": True, "tracking": False}
        >>> wide = run("cavi_probit", "steps=20", **keys)
        >>> narrow = run("cavi_probit", "steps=20", model={"prior_scale": 0.1}, **keys)
        >>> tests = compare(wide=wide, narrow=narrow).tests
        >>> tests.loc[tests.metric == "nlpp", ["a", "b", "n"]].values.tolist()
        [['wide', 'narrow', 2]]
    """
    words = [str(run) for run in runs if not isinstance(run, Result)]
    in_archives, folders = find_records(words, output_dir)
    given = [run for run in runs if isinstance(run, Result) or not is_archive(str(run))]
    unnamed = given or ([] if named else in_archives)
    entries = [*((None, run) for run in unnamed), *named.items()]
    if len(entries) < 2:
        raise ConfigError(f"compare: needs two or more runs, got {len(entries)}")
    by_label: dict[str, ComparedRecord] = {}
    for name, run in entries:
        record = run.compared if isinstance(run, Result) else load(find_in(str(run), folders))
        label = record.label if name is None else name
        if label in by_label:
            raise ConfigError(f"compare: {label} occurs twice; name the runs, compare(a=…, b=…)")
        by_label[label] = record
    return Comparison.of(by_label)
