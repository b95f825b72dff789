"""Studies in block style: the content, the comments and the anchors of the file."""

from __future__ import annotations

import pytest
import yaml

from runner import CONF
from runner.catalogue import block_yaml
from runner.catalogue.block_yaml import to_block_style
from runner.catalogue.list_and_show import main
from runner.disk.yaml_comments import read_comments

STUDIES = sorted((CONF / "study").glob("*.yaml"))
TEXT = """\
# one line of a heading
# and its second
name: a  # short
rows: # all of them
  - {label: X, cells: &c {n: {1: [a=1], 2: [b=2]}}} # an item
  - {label: "Y, y", cells: *c, overrides: [aaaaaaaaaaaaaaaa=1, bbbbbbbbbbbbbbbbb=2]}
grid: {n: [1, 2, 3]}
text: >-
  words that go on and on  and on,
  for longer than a line
empty: {}
none:
# the end
"""
BLOCK = """\
# one line of a heading and its second
name: a # short
# all of them
rows:
  # an item
  - label: X
    cells: &c
      n:
        1: [a=1]
        2: [b=2]
  - label: "Y, y"
    cells: *c
    overrides:
      - aaaaaaaaaaaaaaaa=1
      - bbbbbbbbbbbbbbbbb=2
grid:
  n: [1, 2, 3]
text: >-
  words that go on and on  and on, for
  longer than a line
empty: {}
none:
# the end
"""


def test_every_entry_has_a_line_and_keeps_its_comment():
    assert to_block_style(TEXT, 40) == BLOCK
    assert yaml.safe_load(BLOCK) == yaml.safe_load(TEXT)


def test_rows_of_a_table_in_a_comment_are_not_joined():
    text = "# Scores\n#   A   0.1\n#   B   0.2\na: 1\n"
    assert to_block_style(text, 40) == text


def test_a_text_that_has_no_such_form_stays_as_it_is():
    text = "a: !!set {b, c}\n"
    assert to_block_style(text, 40) == text


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_keeps_its_content_and_comments(path, monkeypatch):
    monkeypatch.setattr(block_yaml, "_is_equal", lambda block, text: True)
    text = path.read_text(encoding="utf-8")
    block = to_block_style(text, 79)
    assert yaml.safe_load(block) == yaml.safe_load(text)
    assert _letters(block) == _letters(text)
    long = [line for line in block.splitlines() if len(line) > 79]
    assert all(" " not in line.strip().removeprefix("- ") for line in long)  # one word


def _letters(text: str) -> list[str]:
    comments = "".join(comment.text for comment in read_comments(text))
    return sorted(comments.replace(" ", "").replace(";", "").replace("#", ""))


def test_show_prints_a_study_that_can_be_kept_as_a_file(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    assert main(["show", "study/tan_table"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# study tan_table\n# run   runner study tan_table\n")
    assert "docs/study_keys.md" in text
    assert max(map(len, text.splitlines())) <= 70
    path = CONF / "study" / "tan_table.yaml"
    assert yaml.safe_load(text) == yaml.safe_load(path.read_text(encoding="utf-8"))
