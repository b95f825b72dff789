"""``runner arena publish``: the pages of suites and an index of them, as files that any web host
serves and that open offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from runner.arena.page import write_suite
from runner.arena.rows import find_snapshots
from runner.arena.scores import read_kept_lines
from runner.arena.standing.boards import find_leader
from runner.arena.suite import Suite
from runner.disk.inside import inside
from runner.errors import ConfigError
from runner.report.pages import write_page

TEMPLATE = Path(__file__).parent / "index.html.j2"


def publish(suites: Sequence[Suite], output_dir: Path, folder: Path) -> Path:
    """Writes a page for each suite that has scores, and the index: its path.

    Raises:
        ConfigError: no suite has scores.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for suite in suites:
        budget = choose_budget(suite, output_dir)
        if budget is not None:
            path = inside(folder, f"{suite.name}.html", "suite")
            lines, user_rows = write_suite(suite, budget, output_dir, path, is_published=True)
            n_rows = lines["row"].nunique()
            entries.append((suite, budget, n_rows, find_leader(suite, lines), user_rows))
    if not entries:
        raise ConfigError("arena publish: no suite has scores; runner arena run makes some")
    return write_page(folder / "index.html", {"entries": entries}, TEMPLATE)


def choose_budget(suite: Suite, output_dir: Path) -> str | None:
    """The longest budget in which the user has rows, else the longest with kept scores; None: the
    suite has no scores."""
    names = [name for name in suite.budgets or [""] if find_snapshots(suite, name, output_dir)]
    scored = suite.order_budgets(names or set(read_kept_lines(suite)["budget"]))
    return scored[-1] if scored else None
