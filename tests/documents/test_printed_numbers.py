"""``printed.md`` counts published numbers and the kept scores next to them."""

from __future__ import annotations

import csv
import shutil

import pandas as pd
import pytest

from runner.statistics.published import Published, load_published
from scripts.prose import printed
from scripts.prose.printed_page import make_printed
from scripts.prose.scores import FOLDER, clear_caches

Q = "Q-learning, β = 0.4, ε = 0.01"
FPQ = "FPQ-learning, β = 0.4, ε = 0.01"
SLOW = "Q-learning, β = 0.75, ε = 0.01"  # not next to a published number
REASON = """  - tables: [gallego_figure_4_8]
    rows: [{}]
    columns: ["*"]
    reason: "{}"
    hours: 2
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder of results with the two published numbers of one figure."""
    tables = [load_published("gallego_figure_4_8")]
    monkeypatch.setattr(printed, "list_tables", lambda: tables)
    write_reasons(tmp_path)
    clear_caches()
    yield tmp_path
    clear_caches()


def write_scores(folder, replicates: dict[str, int], study="blotto", table="reward"):
    clear_caches()
    with (folder / f"{study}_replicates.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "row", "column", "data", "seed", "replicate", "score"])
        for row, n in replicates.items():
            writer.writerows([table, row, table, "blotto", 0, r, -0.9 - 0.1 * r] for r in range(n))


def write_reasons(folder, *reasons: str, total: int = 2):
    listed = "".join(reasons) or " []\n"
    text = f"printed: {{Gallego (2021): {total}}}\nreasons:{'' if not reasons else chr(10)}{listed}"
    (folder / printed.REASONS).write_text(text, encoding="utf-8")


def test_numbers_count_by_row_with_most_replicates(folder):
    write_scores(folder, {Q: 5, FPQ: 7, SLOW: 9})
    text, errors = make_printed(folder)
    assert errors == []
    assert (
        "Of 2 printed numbers, 2 have kept scores next to them, 2 of these with at least five"
        in text
    )
    cells = printed.collect_cells(folder)
    assert cells.set_index("row")["replicates"].to_dict() == {"q_learning": 5, "fpq_learning": 7}
    assert "| 2 | 2 | 2 | 0 |" in text


def test_number_without_reason_is_detected(folder):
    write_scores(folder, {Q: 5, FPQ: 4})
    text, errors = make_printed(folder)
    assert "2 have kept scores next to them, 1 of these" in text
    assert errors == [
        "printed_reasons.yaml: no reason why gallego_figure_4_8, fpq_learning, reward has 4 replicates"
    ]


def test_cell_dropped_from_kept_scores_is_detected(folder):
    write_scores(folder, {Q: 5, FPQ: 5})
    assert make_printed(folder)[1] == []
    write_scores(folder, {FPQ: 5})
    text, errors = make_printed(folder)
    assert "Of 2 printed numbers, 1 have" in text
    assert ["q_learning, reward has 0 replicates" in error for error in errors] == [True]


def test_reason_is_shown_until_stale(folder):
    write_scores(folder, {Q: 5, FPQ: 4})
    write_reasons(folder, REASON.format("fpq_learning", "hours: [setting: 9] rounds"))
    text, errors = make_printed(folder)
    assert errors == []
    assert "| fpq_learning | reward | 1 | 4 | hours: 9 rounds | 2 |" in text
    write_scores(folder, {Q: 5, FPQ: 5})
    assert ["delete it" in error for error in make_printed(folder)[1]] == [True]


def test_unneeded_reason_of_one_row_is_stale(folder):
    write_scores(folder, {Q: 5, FPQ: 4})
    write_reasons(folder, REASON.format("fpq_learning, q_learning", "hours"))
    assert make_printed(folder)[1] == [
        "printed_reasons.yaml: gallego_figure_4_8, q_learning needs no reason, or has one above: "
        "delete it"
    ]


def test_invalid_reasons_are_refused(folder):
    write_scores(folder, {Q: 5, FPQ: 4})
    write_reasons(folder, REASON.format("'*'", "it took 42 hours"))
    assert make_printed(folder)[1] == [
        "printed_reasons.yaml, gallego_figure_4_8: 42 is typed by hand"
    ]
    wrong = REASON.replace("_4_8", "_4_9")
    write_reasons(folder, REASON.format("'*'", "hours"), wrong.format("'*'", "hours"))
    assert "gallego_figure_4_9 is not a published table" in make_printed(folder)[1][0]


def test_results_check_fails_without_reason(folder, monkeypatch):
    from scripts import results

    monkeypatch.setattr(results, "FOLDER", folder)
    (folder / "lost_commits.txt").write_text("blotto\n")
    (folder / "templates").mkdir()
    (folder / "templates" / "README.md.in").write_text("# Page\n")
    write_scores(folder, {Q: 5, FPQ: 5})
    assert results.make_prose(check=False) == []
    assert results.make_prose(check=True) == []
    write_scores(folder, {Q: 5, FPQ: 4})
    errors = results.make_prose(check=True)
    assert ["no reason" in error or "differs" in error for error in errors] == [True, True]
    (folder / printed.REASONS).write_text("printed: 3\n")
    assert printed.REASONS in results.make_prose(check=True)[0]


def test_numbers_without_file_count_as_published(folder):
    write_scores(folder, {Q: 5, FPQ: 5})
    write_reasons(folder, total=9)
    text, errors = make_printed(folder)
    assert errors == []
    assert "Of 9 printed numbers, 2 have" in text
    assert "without kept scores: 7 of Gallego (2021)" in text


def test_verdict_uses_comparable_row_with_most_replicates():
    words = [("a", 2, "not comparable"), ("b", 3, "indicative"), ("c", 9, "not comparable")]
    lines = [("table", "0_0", "accuracy", *each) for each in words]
    best = printed.pick_scores(pd.DataFrame(lines, columns=printed.SCORED)).iloc[0]
    assert (best["replicates"], best["verdict"]) == (9, "indicative")


def test_published_number_of_replicates_suffices(folder, monkeypatch):
    three_runs = load_published("gallego_table_2_9")
    monkeypatch.setattr(printed, "list_tables", lambda: [three_runs])
    assert set(printed.collect_cells(folder)["enough"]) == {3}


def test_scores_count_for_reprinted_numbers(folder, monkeypatch):
    names = ("boustati_table_6_1", "boustati_table_d_3")
    monkeypatch.setattr(printed, "list_tables", lambda: [load_published(name) for name in names])
    clear_caches()
    shutil.copy(FOLDER / "air_quality_replicates.csv.gz", folder)
    cells = printed.collect_cells(folder)
    assert len(cells) == 22
    assert set(cells["replicates"]) == {100}


def test_number_repeated_in_table_counts_once(folder, monkeypatch):
    values = {"RF": {"largest": "1.03", "OOH": "0.99"}}
    table = load_published("gallego_table_1_7").model_dump(exclude={"values"})
    for both, count in ((values, 2), ({"RF": values["RF"] | {"CC_IX": "1.03"}}, 2)):
        again = [Published(**table, values=both)]
        monkeypatch.setattr(printed, "list_tables", lambda again=again: again)
        assert len(printed.collect_cells(folder)) == count


def test_reprinted_numbers_are_equal():
    for table in printed.list_tables():
        if table.reprinted_in:
            repeat = load_published(table.reprinted_in)
            assert all(
                values.items() <= repeat.values[row].items() for row, values in table.values.items()
            )
