"""Mean ranks in the prose of docs/results."""

import csv

import numpy as np
import pandas as pd
import pytest

from scripts.prose.fields import fill_field
from scripts.prose.ranks import error_by_column
from scripts.prose.scores import Lookup, ProseError, load_scores

ROWS = [f"AADM (α = {alpha}), accelerated" for alpha in ("0.0001", "0.25", "0.5", "0.75", "1.0")]
# log-likelihoods by split of two data sets, a row for each α, chosen so that ranks are easy to read
# off
TESTED = {
    "boston": [[1, 5, 5], [5, 4, 4], [4, 3, 3], [3, 2, 2], [2, 1, 1]],
    "yacht": [[1, 1, 1], [2, 2, 2], [3, 3, 3], [4, 4, 4], [5, 5, 5]],
}


def write_scores(path, scores):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "row", "column", "data", "seed", "replicate", "score"])
        for column, rows in scores.items():
            for row, values in zip(ROWS, rows, strict=True):
                for r, value in enumerate(values):
                    writer.writerow(["log_likelihood", row, column, "uci", 0, r, value])


@pytest.fixture
def folder(tmp_path):
    write_scores(tmp_path / "aadm_uci_replicates.csv", TESTED)
    load_scores.cache_clear()
    yield tmp_path
    load_scores.cache_clear()


def test_ranks_over_splits_and_sets_match_counts(folder):
    table = fill_field('ranks("aadm_uci:*:*:ranks_*log_likelihood")', Lookup(folder))
    lines = {line.split(" | ")[0].strip("| "): line for line in table.splitlines()}
    # over splits 5 1 1 5 5 5; over means of sets: second on boston, last on yacht
    # SE by data set: deviations of splits sum to -4 and 4; √(2/1 · (16 + 16)) / 6
    assert "| 3.50 ± 1.50 | 3.67 ± 1.33 |" in lines["AADM (α = 0.0001), accelerated"]
    # Demšar (2006), table 5: 2.728 for five; times √(5 · 6 / (6 · 6))
    assert f" | {2.728 * 0.91287:.2f} |" in lines["critical difference (Nemenyi)"]


def test_rank_table_has_column_for_each_diagram(folder):
    table = fill_field('ranks("aadm_uci:*:*:ranks_*log_likelihood")', Lookup(folder)).splitlines()
    # Boston's own diagram omits the rows in between
    assert table[0].startswith("| mean rank | Test log-likelihood over all sets | ")
    assert any(line.startswith("| AADM (α = 0.0001), accelerated | 3.50") for line in table)
    assert table[-3].startswith("| blocks | 2 | 6 |")


def test_single_set_gives_no_standard_error():
    blocks = pd.MultiIndex.from_product([["boston"], [0, 1]], names=["column", "replicate"])
    ranks = pd.DataFrame([[1.0, 2.0], [2.0, 1.0]], index=blocks)
    assert np.isnan(error_by_column(ranks)).all()


def test_unknown_diagrams_are_refused(folder):
    with pytest.raises(ProseError, match="not a diagram of ranks"):
        fill_field('ranks("aadm_uci:*:*:ranks_of_nothing")', Lookup(folder))
