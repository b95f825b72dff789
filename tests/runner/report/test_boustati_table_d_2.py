"""Rows of Boustati's Table D.2 are stored under corrected labels; six printed labels are wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner.statistics.published import load_published

BPF = "bootstrap_filter"
T = "student_t_filter"
APF = "auxiliary_filter"
PRINTED = {  # the printed label of each row that is mislabelled in print
    "beta_bootstrap_filter 0.005": T,
    "beta_bootstrap_filter 0.01": "beta_bootstrap_filter 0.005",
    "beta_bootstrap_filter 0.05": "beta_bootstrap_filter 0.01",
    "beta_bootstrap_filter 0.1": "beta_bootstrap_filter 0.05",
    "beta_bootstrap_filter 0.2": "beta_bootstrap_filter 0.1",
    T: "beta_bootstrap_filter 0.2",
}
SMALL = ("0.005", "0.01", "0.05", "0.1")


def means() -> dict[str, dict[str, float]]:
    table = load_published("boustati_table_d_2")
    return {
        row: {column: number.mean for column, number in cells.items()}
        for row, cells in table.values.items()
    }


def find_disorder(rows: dict[str, dict[str, float]]) -> list[str]:
    """Pairs of rows that differ in a column from Fig. 6.2 and the published code."""
    above = [(BPF, T), *((BPF, f"beta_bootstrap_filter {b}") for b in SMALL)]
    above += [(APF, f"beta_auxiliary_filter {b}") for b in SMALL]
    above += [(f"beta_bootstrap_filter {b}", f"beta_auxiliary_filter {b}") for b in (*SMALL, "0.2")]
    above += [("beta_bootstrap_filter 0.005", "beta_bootstrap_filter 0.01")]
    above += [("beta_bootstrap_filter 0.01", "beta_bootstrap_filter 0.05")]
    # the worst β is the largest, as for the APF
    above += [("beta_bootstrap_filter 0.2", "beta_bootstrap_filter 0.1")]
    above += [("beta_auxiliary_filter 0.2", "beta_auxiliary_filter 0.1")]
    return [f"{a} > {b} at {c}" for a, b in above for c in rows[a] if not rows[a][c] > rows[b][c]]


def test_table_is_complete_and_ordered():
    table = load_published("boustati_table_d_2")
    rows = means()
    assert len(rows) == 13
    assert all(len(cells) == 8 for cells in rows.values())
    assert (table.spread, table.runs) == ("se", 50)
    assert all(
        number.spread is not None for cells in table.values.values() for number in cells.values()
    )
    assert find_disorder(rows) == []
    assert rows[BPF]["0.05"] == 16.63
    assert rows[T]["0.4"] == 18.84
    assert rows["beta_auxiliary_filter 0.2"]["0.4"] == 19.28


def test_table_with_swapped_labels_is_not_ordered():
    rows = means()
    turned = {PRINTED.get(row, row): cells for row, cells in rows.items()}
    assert sorted(turned) == sorted(rows)
    assert find_disorder(turned)
    for row, printed in PRINTED.items():  # nor after exchanging any two of them
        swapped = dict(rows) | {row: rows[printed], printed: rows[row]}
        assert find_disorder(swapped), row


@pytest.mark.parametrize("row", PRINTED)
def test_printed_label_is_shown_next_to_ours(row):
    text = (Path(__file__).parents[3] / "conf/published/boustati_table_d_2.yaml").read_text(
        encoding="utf-8"
    )
    line = next(line for line in text.splitlines() if re.match(rf'\s+"?{re.escape(row)}"?:', line))
    printed = line.partition("# printed: ")[2]
    kind = {"student_t_filter": "t-BPF"}.get(PRINTED[row]) or f"β-BPF = {PRINTED[row].split()[1]}"
    assert printed == kind
