"""The page of a suite: standings by every score, tables by problem, scores against costs.

The user's rows are marked, and the page opens offline.
"""

from __future__ import annotations

import shlex
from math import nan
from pathlib import Path

import pandas as pd

from runner.arena.figures import list_figures
from runner.arena.rows import find_snapshots, read_lines
from runner.arena.scores import CHECKS, final_lines, list_checks
from runner.arena.standing.boards import Board
from runner.arena.standing.problem_results import list_costs
from runner.arena.standing.standings import LAST, LEVEL
from runner.arena.suite import Suite
from runner.arena.summary import tabulate_board
from runner.report.context import describe_study
from runner.report.details import details
from runner.report.origin import UNNAMED, CellFacts, Kept, Origin
from runner.report.pages import embed_figures, write_page
from runner.report.results import layout_table
from runner.report.scores.cells import FAILED_CHECK_MARK, SHORT_MARK, list_cells, read_failures
from runner.report.scores.earlier import PLACE, WHOLE
from runner.study.protocol import UNKNOWN
from runner.study.table_specs import Row

TEMPLATE = Path(__file__).parent / "page.html.j2"
# states of problems that a board counts, and the words of its columns
STATES = {state: state for state in LAST} | {"not applicable": "n/a"}
# failed checks of a line without stored names
FAILED_OF_STATE = {"short": f"{UNNAMED} {SHORT_MARK}", "doubted": UNNAMED}


def read_board(suite: Suite, budget: str, output_dir: Path) -> Board:
    """Board of the kept rows and the user's rows in an output folder."""
    frozen = find_snapshots(suite, budget, output_dir)
    user_rows = [snapshot.study.rows[0] for snapshot in frozen]
    return Board(suite, budget, read_lines(suite, budget, frozen), user_rows)


def write(board: Board, path: Path, is_published: bool = False) -> Path:
    """Write the page of a board, the user's rows first; ``is_published`` is True if an index is
    written next to it.
    """
    suite = board.suite
    lines = board.lines
    rows = list_rows(board)
    changes = {"reference": next(iter(board.own), None)}
    study = suite.to_study(rows).model_copy(update=changes)
    tables = layout_table(study, None, to_kept(suite, lines))
    final = final_lines(lines)
    commits = final.set_index(["row", "problem"])["commit"].to_dict()
    commands = [
        (command_of(board, cell.row, cell.column), commits.get((cell.row.name, cell.column)))
        for cell in list_cells(tables)
    ]
    ranked = [(table, board.rank(table)) for table in suite.ranked]
    ends = set[str]().union(*(each.states for _, standings in ranked for each in standings))
    header, leading = tabulate_board(board)
    figures = list_figures(board, [row.name for row in rows], ranked)
    limits = suite.budgets.get(board.budget, {})
    words = " or ".join(f"{limit:,.0f} {kind}" for kind, limit in limits.items())
    reached = f"Budget {board.budget}, of a replicate: {words}, which is reached first."
    notes = [reached] * bool(limits) + ["Nothing has been run yet."] * lines.empty
    context = describe_study(study, tables) | {
        "name": f"arena: {suite.name}",
        "smoke": False,
        "home": is_published,
        "header": header,
        "leading": leading,
        "leads": bool(figures) and not figures[0]["chart"],
        "board": board,
        "n_problems": lines["problem"].nunique(),
        "boards": ranked,
        "costs": list_costs(lines),
        "states": {state: words for state, words in STATES.items() if state in ends},
        "mark": FAILED_CHECK_MARK,
        "checks": list_checks(lines),
        "short": SHORT_MARK,
        "interval": f"{LEVEL:.0%} interval",
        "tuned": {row.name: row.tuned for row in rows if row.tuned},
        "figures": figures,
        "beside": "",
        "changes": {},
        "runs": [],
        "commands": commands,
        "notes": notes,
        "provenance": [
            ("suite", f"{suite.name}, {len(suite.problems)} problems"),
            ("budget", board.budget or "none"),
            ("replicates", f"up to {len(final.groupby(['seed', 'replicate']))}"),
            ("code", ", ".join(filter(None, lines["commit"].unique())) or "–"),
            ("seconds of kept rows", suite.machine or "–"),
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_page(path, context | embed_figures(figures) | details([], path.parent), TEMPLATE)


def list_rows(board: Board) -> list[Row]:
    """The user's rows, then the suite's rows with scores."""
    names = set(board.lines["row"]).difference(board.own)
    kept = [row for row in board.suite.rows if row.name in names]
    return [*board.user_rows, *kept] or list(board.suite.rows)


def to_kept(suite: Suite, lines: pd.DataFrame) -> Kept:
    """Final scores in the form of kept scores for the tables of a report."""
    final = final_lines(lines).rename(columns={"problem": "column"})
    scores = pd.concat(
        final.assign(table=table.name, score=final.get(str(table.metric), nan), protocol=UNKNOWN)
        for table in suite.tables
    )
    # a replicate that lacks a score that others have is not finite
    has_score = scores.groupby(PLACE)["score"].transform("count") > 0
    scores["replicate"] = scores["replicate"].where(has_score, WHOLE)
    places = scores.drop_duplicates(PLACE)[[*PLACE, "state", "replicate", CHECKS]].to_numpy()
    cells = [
        CellFacts(
            table,
            row,
            problem,
            why=STATES.get(state, "") if replicate == WHOLE else "",
            failed=read_failures(checks or FAILED_OF_STATE.get(state, "")),
        )
        for table, row, problem, state, replicate, checks in places
    ]
    return Kept(scores, Origin(cells=cells))


def command_of(board: Board, row: Row, problem: str) -> str:
    """Command line that runs one cell."""
    if board.command:
        return f"{board.command} --methods '{row.name}'"
    cells = row.cells.get("problem", {}).get(problem, [])
    words = shlex.join([*row.overrides, *cells])
    chosen = f" --budget {board.budget}" if board.budget else ""
    return (
        f"runner arena run {board.suite.name} {words} --as '{row.name}'{chosen} "
        f"--only 'problem={problem}'"
    )
