"""``runner report --with FILE``: scores of an earlier report next to recorded ones."""

import csv
import re

import pytest

from runner.errors import ConfigError
from runner.report.command import main
from runner.report.origin import Kept
from runner.report.results import layout_table
from runner.report.scores.earlier import HEADER, read_earlier
from runner.study.definition import load_study

STUDY = load_study("sarcos_table")


def write_lines(path, *lines):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *lines])
    return path


@pytest.mark.slow  # 5 s
def test_report_reads_its_own_scores(tmp_path, capsys):
    scores = [0.1, 0.30000000000000004, 0.2]
    lines = [
        ["nlpp", "iGP, tuned", "1000", "sarcos", 0, r, score] for r, score in enumerate(scores)
    ]
    given = write_lines(tmp_path / "a.csv", *lines)
    assert (
        main(["report", "sarcos_table", "--output-dir", str(tmp_path), "--with", str(given)]) == 0
    )
    folder = tmp_path / "sarcos_table" / "report"
    assert (folder / "sarcos_table_replicates.csv").read_text() == given.read_text()
    page = (folder / "sarcos_table.md").read_text()
    assert "3 scores of earlier reports (--with) are included" in page
    assert "Protocol unknown for 3 scores." in page
    assert "Nothing has been run" not in (folder / "sarcos_table.md").read_text()
    (cell,) = (
        c
        for laid in layout_table(STUDY, None, Kept(read_earlier({str(given): given}, STUDY)))
        for _, row in laid.rows
        for c in row
        if c.values
    )
    assert (cell.row.name, cell.column, cell.data, cell.earlier) == (
        "iGP, tuned",
        "1000",
        "sarcos",
        3,
    )
    assert cell.verdict.word == "indicative"  # judged like our own row of three replicates


def test_later_of_two_files_takes_precedence(tmp_path):
    first = write_lines(
        tmp_path / "a.csv", *(["nlpp", "iGP, tuned", "100", "sarcos", 0, r, 1.0] for r in (0, 1))
    )
    second = write_lines(
        tmp_path / "b.csv", *(["nlpp", "iGP, tuned", "100", "sarcos", 0, r, 2.0] for r in (1, 2))
    )
    scores = read_earlier({"a": first, "b": second}, STUDY)
    assert dict(zip(scores["replicate"], scores["score"], strict=True)) == {0: 1, 1: 2, 2: 2}


GOOD = ["nlpp", "iGP, tuned", "100", "sarcos", 0, 0, 1.0]
WRONG = {
    "table nlp is not one of sarcos_table, did you mean nlpp?": ["nlp", *GOOD[1:]],
    "row iGP, tuneed is not one of sarcos_table, did you mean iGP, tuned?": [
        "nlpp",
        "iGP, tuneed",
        *GOOD[2:],
    ],
    "column 101 is not in table nlpp": [*GOOD[:2], "101", *GOOD[3:]],
    "seed, replicate and score must be numbers": [*GOOD[:6], "low"],
    "data other, but other lines of this cell have sarcos": [*GOOD[:3], "other", 0, 1, 1.0],
}


@pytest.mark.parametrize("message", WRONG)
def test_invalid_line_is_named(tmp_path, message):
    given = write_lines(tmp_path / "a.csv", GOOD, WRONG[message])
    with pytest.raises(ConfigError, match=re.escape(f"--with {given}, line 3: {message}")):
        read_earlier({str(given): given}, STUDY)


def test_files_without_scores_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        read_earlier({"none": tmp_path / "none.csv"}, STUDY)
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_earlier({"b": tmp_path / "b.csv"}, STUDY)
    (tmp_path / "c.csv").write_text("table,row\n")
    with pytest.raises(ConfigError, match="column column; give the <study>_replicates"):
        read_earlier({"c": tmp_path / "c.csv"}, STUDY)
