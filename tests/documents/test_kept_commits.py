"""Kept scores with unknown code, or from a commit that is not in the history."""

import json

import pytest

from runner.report.origin import Origin
from scripts.prose import origin_notes
from scripts.prose.origin_notes import check_commits, find_fault

CODE = ("code", "abc1234567")
EARLIER = ("of earlier scores: code", "abc1234567 with uncommitted changes")


@pytest.fixture(autouse=True)
def history(monkeypatch):
    monkeypatch.setattr(origin_notes, "read_history", lambda: frozenset({"abc1234567"}))


@pytest.mark.parametrize(
    ("provenance", "notes", "fault"),
    [
        ([CODE], [], ""),
        ([], [], "the commit is unknown"),
        ([("code", "def1234567")], [], "commit def1234567 is not in the history"),
        ([CODE, EARLIER], [], ""),
        (
            [CODE, EARLIER],
            ["5 scores of earlier reports (--with)"],
            f"the code was abc1234567, {EARLIER[1]}",
        ),
    ],
)
def test_scores_cite_commits_of_the_history(provenance, notes, fault):
    assert find_fault(Origin(provenance, notes)) == fault


def test_list_of_lost_commits_only_shrinks(tmp_path):
    (tmp_path / "spoofed_replicates.csv").write_text("", encoding="utf-8")
    origin = json.dumps({"provenance": [["code", "def1234567"]]})
    (tmp_path / "spoofed_origin.json").write_text(origin, encoding="utf-8")
    wrong = "spoofed: commit def1234567 is not in the history; run it again"
    assert check_commits(tmp_path) == [wrong]
    (tmp_path / "lost_commits.txt").write_text("shaping\nspoofed\n", encoding="utf-8")
    assert check_commits(tmp_path) == [
        "lost_commits.txt: shaping has a known commit; delete the line"
    ]
