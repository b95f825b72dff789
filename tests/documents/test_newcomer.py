"""The tutorials, in order, with an installed runner in a clean home folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from support.runs.installed import build_wheel, install

from scripts.outputs.__main__ import COLUMNS, ROOT, run_page
from scripts.outputs.__main__ import TUTORIALS as PAGES
from scripts.outputs.comparison import select_lines
from scripts.outputs.parts import Command, File, Output, parse
from scripts.outputs.pictures import PICTURE_BYTES

SIX_GOALS = (
    "reproduce_a_table",
    "your_method",
    "attack_your_network",
    "forecast_your_series",
    "a_nights_sweep",
    "a_table_for_a_paper",
)
LONGEST = 10  # minutes of a tutorial
TEXT = {page: page.read_text(encoding="utf-8") for page in PAGES}
by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def read_minutes(text):
    """Minutes stated in a page."""
    return int(re.search(r"^\*\*Time:\*\* (\d+) minutes?\b", text, re.MULTILINE)[1])


def to_words(text: str) -> list[str]:
    """Words of an output, without numbers, signatures of runs, and lines of tables."""
    text = re.sub(r"\b[0-9a-f]{12}\b|[━─┏┳┓┡╇┩└┴┘│┃]+", " ", text)
    return re.findall(r"[^\W\d]{3,}", text)


def test_page_parses_into_files_and_commands():
    page = (
        "**Time:** 2 minutes on two cores.\n\n```python\n# a.py\nprint(1)\n```\n\n"
        "    python a.py\n    runner x \\\n      y=1\n\n"
        '<!-- output\nkeep: ["^b"]\n-->\n```text\nb\n```\n\n`c.csv`:\n\n```csv\nu,v\n```\n'
    )
    assert parse(page) == [
        File("a.py", "# a.py\nprint(1)\n"),
        Command("python a.py"),
        Command("runner x \\\n      y=1", (Output("b\n", keep=["^b"]),)),
        File("c.csv", "u,v\n"),
    ]


def test_page_runs_in_its_folder(tmp_path):
    page = (
        "```sh\n# a/b.txt\n```\n    cat a/b.txt; echo x 1\n"
        "<!-- output\nkeep: [^x]\n-->\n```text\n```\n"
    )
    shown: list[str] = []
    run_page(page, tmp_path, os.environ, lambda _, lines, __: shown.append(lines))
    assert shown == ["…\nx 1\n"]
    with pytest.raises(RuntimeError, match="exit code 3"):
        run_page("    exit 3\n", tmp_path, os.environ)
    with pytest.raises(FileNotFoundError, match=r"no file x\.png"):
        run_page(page.replace("keep: [^x]", "figures: {x.png: y.png}"), tmp_path, os.environ)


def test_omitted_lines_become_one_ellipsis():
    assert select_lines("a 1  \nb\n\nc\na 2\n", ["^a"]) == "a 1\n…\na 2\n"
    assert select_lines("a\n\nb\n", []) == "a\n\nb\n"


def test_six_goals_are_tutorials():
    assert {page.stem for page in PAGES} >= set(SIX_GOALS)


@by_page
def test_page_states_outcome_and_duration(page):
    assert "**You will have:**" in TEXT[page]
    assert "\n## Next\n" in TEXT[page]
    assert read_minutes(TEXT[page]) <= LONGEST


@by_page
def test_page_ends_with_picture_from_its_commands(page):
    outputs = [o for step in parse(TEXT[page]) if isinstance(step, Command) for o in step.outputs]
    assert len(outputs) >= 2
    assert all(output.shown.strip() for output in outputs)
    pictures = {target for output in outputs for target in output.figures.values()}
    assert pictures
    shown = re.findall(r"^!\[[^\]]+\]\(\.\./(pictures/tutorials/\w+\.png)\)$", TEXT[page], re.M)
    assert pictures == {f"docs/{target}" for target in shown}
    assert all((ROOT / target).stat().st_size <= PICTURE_BYTES for target in pictures)


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """Folder of the programs of an environment where the runner is installed."""
    folder = tmp_path_factory.mktemp("installed")
    return install(build_wheel(folder), folder / "env")[0]


@pytest.mark.slow  # each takes minutes
@pytest.mark.parametrize(
    "page", sorted(PAGES, key=lambda p: p.stem not in SIX_GOALS), ids=lambda page: page.stem
)
def test_newcomer_completes_page(page, programs, tmp_path):
    """Every command succeeds, prints the output in the page, and writes the files in the page.

    The time is the CPU time of all cores, an upper bound of the time on an idle machine that does
    not depend on other load.
    """
    (home := tmp_path / "home").mkdir()
    (work := tmp_path / "work").mkdir()
    environment = {
        "HOME": str(home),
        "PATH": f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "LANG": "C.UTF-8",
        "COLUMNS": str(COLUMNS),
        "OMP_NUM_THREADS": "1",
    }

    def compare(output: Output, lines: str, folder: Path) -> None:
        missing = set(to_words(output.shown)) - set(to_words(lines))
        assert not missing, f"the page shows {missing}; printed:\n{lines}"

    started = os.times()
    run_page(TEXT[page], work, environment, compare)
    after = os.times()
    seconds = after.children_user - started.children_user
    seconds += after.children_system - started.children_system
    assert seconds <= 60 * read_minutes(TEXT[page])
