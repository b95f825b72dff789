"""``runner arena publish``: the pages of suites and an index of them, as files that any web host
serves and that open offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runner.arena import page
from runner.arena.rows import find_snapshots
from runner.arena.scores import read_kept_lines
from runner.arena.suite import Suite
from runner.disk.inside import inside
from runner.errors import ConfigError
from runner.report.pages import write_page

TEMPLATE = Path(__file__).parent / "index.html.j2"


def publish(suites: Sequence[Suite], output_dir: Path, folder: Path) -> Path:
    """Write a page for each suite with scores, and the index; return the path of the index.

    Raises:
        ConfigError: no suite has scores.
    """
    boards = [
        page.read_board(suite, budget, output_dir)
        for suite in suites
        if (budget := choose_budget(suite, output_dir)) is not None
    ]
    if not boards:
        raise ConfigError("arena publish: no suite has scores; run a row with runner arena run")
    folder.mkdir(parents=True, exist_ok=True)
    for board in boards:
        page.write(board, inside(folder, f"{board.suite.name}.html", "suite"), is_published=True)
    return write_page(folder / "index.html", {"boards": boards}, TEMPLATE)


def choose_budget(suite: Suite, output_dir: Path) -> str | None:
    """Longest budget with rows of the user, or else with kept scores; None if the suite has no
    scores.
    """
    names = [name for name in suite.budgets or [""] if find_snapshots(suite, name, output_dir)]
    scored = suite.order_budgets(names or set(read_kept_lines(suite)["budget"]))
    return scored[-1] if scored else None
