"""Outputs, tables and figures in README and docs/methods match the program."""

import re
import shlex

import pytest
from support.runs.printed_commands import ROOT, list_printed

from scripts import readme_table
from scripts.outputs.__main__ import PAGES, build_environment, run_command
from scripts.outputs.comparison import is_same_output, select_lines
from scripts.outputs.parts import Output, fill, find_outputs, parse
from scripts.prose.scores import clear_caches

OUTPUTS = [(page, output) for page in PAGES for output in find_outputs(page.read_text("utf-8"))]


def test_omitted_lines_become_one_ellipsis():
    assert select_lines("a 1  \nb\n\nc\na 2\n\na 3\n", ["^a"]) == "a 1\n…\na 2\na 3\n"
    assert select_lines("a\n\nb\n", []) == "a\n\nb\n"


def test_outputs_are_compared_by_words_and_numbers():
    old = "run 34afd21a375a\n┃ nlpp ┃ 0.51 ┃  (2.0 s)\n"
    assert is_same_output(old, "run a5b362a0fe3a\n┃  nlpp ┃ 0.50 ┃  (9.0 s)\n")
    assert not is_same_output(old, old.replace("0.51", "0.91"))
    assert not is_same_output(old, old.replace("nlpp", "rmse"))
    assert is_same_output(old, old.replace("0.51", "0.91"), timed=True)
    assert not is_same_output(old, old.replace("nlpp", "rmse"), timed=True)


def test_page_is_filled_with_outputs():
    block = "<!-- output\nrun: +experiment=mog\nkeep: [b]\n-->\n```text\n{}```\nend\n"
    page = "    runner is not run here\n\n" + block
    assert find_outputs(page.format("old\n")) == [Output("old\n", "+experiment=mog", ["b"])]
    assert fill(page.format("old\n"), ["…\nb\n"]) == page.format("…\nb\n")


@pytest.mark.parametrize(("page", "output"), OUTPUTS, ids=lambda value: getattr(value, "stem", ""))
def test_shown_outputs_belong_to_printed_commands(page, output):
    assert shlex.split(output.run or "") in [
        list(command.words) for command in list_printed() if command.page == page
    ]
    text = page.read_text(encoding="utf-8")
    assert len(output.shown.splitlines()) > 3
    for figure in output.figures.values():
        assert (ROOT / figure).is_file()
        assert f"{figure.removeprefix('docs/')})" in text


def test_every_method_page_has_an_output():
    shown = {page for page, _ in OUTPUTS}
    assert shown == set(PAGES)


def test_readme_table_matches_its_scores():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"<!-- results: make results -->\n{readme_table.table()}<!-- end -->\n" in text
    cell = readme_table.find_cell(readme_table.ENTRIES[0]).cell
    cell.values = {key: value + 1.0 for key, value in cell.values.items()}
    assert readme_table.table() not in text
    clear_caches()


def test_every_panel_of_readme_picture_has_numbers():
    for entry in readme_table.ENTRIES:
        labels = [label for label, _ in readme_table.panel_cells(entry)]
        assert len(labels) == len(set(labels)) >= 6, entry.study
    assert readme_table.PICTURE.is_file()


def test_readme_names_the_goals_and_their_tutorials():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    goals = re.findall(r"^\| .* \| \[.*\]\((docs/tutorials/\w+\.md)\) \| .* \|$", text, re.M)
    assert len(goals) == len(set(goals)) == 6


@pytest.mark.slow  # minutes, mostly for the four filters
@pytest.mark.parametrize(("page", "output"), OUTPUTS, ids=lambda value: getattr(value, "stem", ""))
def test_run_prints_output_shown_in_page(page, output, tmp_path):
    command = next(step for step in parse(page.read_text("utf-8")) if output in step.outputs)
    printed_text = run_command(command, tmp_path, build_environment())
    if simulated := re.search(r"^(?:data|target) (\S+-sim)\b", printed_text, re.M):
        pytest.skip(f"the data are simulated here: {simulated[1]}")
    assert is_same_output(output.shown, select_lines(printed_text, output.keep), output.timed)
