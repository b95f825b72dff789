"""The page of a suite: standings by every score, tables by problem, scores against costs.

The user's rows are marked; it opens offline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import nan
from pathlib import Path

import pandas as pd

from runner.arena.figures import list_figures
from runner.arena.rows import find_snapshots, quote_words, read_lines
from runner.arena.scores import CHECKS, JOIN, final_lines
from runner.arena.standing.boards import costs_by_tolerance, rank_table, solved_rows
from runner.arena.standing.problem_results import list_costs
from runner.arena.standing.standings import LEVEL
from runner.arena.suite import Suite
from runner.arena.summary import tabulate_board
from runner.record.checks import Failures
from runner.report.details import details
from runner.report.origin import UNNAMED, CellFacts, Kept, Origin
from runner.report.pages import embed_figures, write_page
from runner.report.results import layout_table
from runner.report.scores.cells import FAILED_CHECK_MARK, SHORT_MARK
from runner.report.scores.earlier import PLACE, WHOLE
from runner.report.wording import CORRECTION, describe_bold, describe_test
from runner.study.protocol import UNKNOWN
from runner.study.table_specs import Row

TEMPLATE = Path(__file__).parent / "page.html.j2"
# states of problems that a board counts, and the words of its columns
STATES = {
    "failed": "failed",
    "over budget": "over budget",
    "diverged": "diverged",
    "incomplete": "incomplete",
    "not run": "not run",
    "not applicable": "n/a",
}

# failed checks of a line without stored names
FAILED_OF_STATE = {"short": "checks that more steps would pass", "doubted": UNNAMED}


def write_suite(
    suite: Suite, budget: str, output_dir: Path, path: Path, is_published: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    """Writes the page of the kept rows and of the user's below an output folder: the lines of all,
    and the names of the user's."""
    frozen = find_snapshots(suite, budget, output_dir)
    lines = read_lines(suite, budget, frozen)
    user_rows = [snapshot.study.rows[0] for snapshot in frozen]
    write(suite, budget, lines, user_rows, path, is_published)
    return lines, [row.name for row in user_rows]


def write(
    suite: Suite,
    budget: str,
    lines: pd.DataFrame,
    own: Sequence[Row],
    path: Path,
    is_published: bool = False,
) -> Path:
    """Writes the page of a budget's lines; ``own``: the user's rows, ``is_published``: an index is
    next to it."""
    rows = list_rows(suite, lines, own)
    study = suite.to_study(rows)
    reference = own[0].name if own else None
    study = study.model_copy(update={"reference": reference})
    tables = layout_table(study, None, to_kept(suite, lines))
    commits = final_lines(lines).set_index(["row", "problem"])["commit"].to_dict()
    commands = [
        (
            command_of(suite, budget, cell.row, cell.column),
            commits.get((cell.row.name, cell.column)),
        )
        for laid in tables
        for cell in laid.cells
    ]
    boards = [(table, rank_table(suite, table, lines, reference)) for table in suite.ranked]
    names = [row.name for row in own]
    costs = costs_by_tolerance(suite, lines)
    solved = solved_rows(suite, costs, lines)
    ends = Counter[str]()
    for counts in (*(s["states"] for s in solved), *(s.states for _, each in boards for s in each)):
        ends += counts
    header, leading = tabulate_board(suite, solved, boards[0][1], names)
    figures = list_figures(suite, lines, [row.name for row in rows], boards, names, costs)
    context = {
        "name": f"arena: {suite.name}",
        "smoke": False,
        "description": suite.description,
        "draws_anew": suite.draws_anew or "",
        "notes": _notes(suite, budget, lines),
        "home": is_published,
        "header": header,
        "leading": leading,
        "leads": bool(figures) and not figures[0]["chart"],
        "solve": suite.solve,
        "solved": solved,
        "n_problems": lines["problem"].nunique(),
        "boards": boards,
        "direction": suite.direction,
        "costs": list_costs(lines),
        "states": {state: words for state, words in STATES.items() if ends[state]},
        "mark": FAILED_CHECK_MARK,
        "checks": list_checks(lines),
        "short": SHORT_MARK,
        "interval": f"{LEVEL:.0%} interval",
        "own": names,
        "tuned": {row.name: row.tuned for row in rows if row.tuned},
        "figures": figures,
        "tables": tables,
        "bold": describe_bold(suite.splits is not None),
        "test": describe_test(suite.splits is not None),
        "correction": CORRECTION,
        "reference": reference,
        "beside": "",
        "changes": {},
        "provenance": _provenance(suite, budget, lines),
        "runs": [],
        "commands": commands,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_page(path, context | embed_figures(figures) | details([], path.parent), TEMPLATE)


def list_rows(suite: Suite, lines: pd.DataFrame, own: Sequence[Row]) -> list[Row]:
    """The user's rows, then the suite's rows that have lines."""
    names = set(lines["row"]).difference(row.name for row in own)
    kept = [row for row in suite.rows if row.name in names]
    return [*own, *kept] or list(suite.rows)


def to_kept(suite: Suite, lines: pd.DataFrame) -> Kept:
    """Final scores as the tables of a report take them."""
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
            failed=to_failures(state, checks),
        )
        for table, row, problem, state, replicate, checks in places
    ]
    return Kept(scores, Origin(cells=cells))


def to_failures(state: str, checks: str) -> Failures:
    """Failed checks of a line, by name."""
    names = (checks or FAILED_OF_STATE[state]).split(JOIN) if state in FAILED_OF_STATE else []
    return dict.fromkeys(names, state == "short")


def list_checks(lines: pd.DataFrame) -> dict[str, str]:
    """Names of the checks that each row failed on some problem."""
    names = lines[["row", CHECKS]].assign(**{CHECKS: lines[CHECKS].str.split(JOIN)}).explode(CHECKS)
    names = names[names[CHECKS] != ""].drop_duplicates().sort_values(CHECKS)
    return dict(names.groupby("row")[CHECKS].agg(JOIN.join))


def command_of(suite: Suite, budget: str, row: Row, problem: str) -> str:
    """Command line that runs one cell."""
    cells = row.cells.get("problem", {}).get(problem, [])
    words = quote_words([*row.overrides, *cells])
    chosen = f" --budget {budget}" if budget else ""
    return f"runner arena run {suite.name} {words} --as '{row.name}'{chosen} --only 'problem={problem}'"


def _notes(suite: Suite, budget: str, lines: pd.DataFrame) -> list[str]:
    limits = suite.budgets.get(budget, {})
    words = " or ".join(f"{limit:,.0f} {kind}" for kind, limit in limits.items())
    notes = [f"Budget {budget}, of a replicate: {words}, which is reached first."] if limits else []
    if final_lines(lines).empty:
        notes.append("Nothing has been run yet.")
    return notes


def _provenance(suite: Suite, budget: str, lines: pd.DataFrame) -> list[tuple[str, str]]:
    commits = filter(None, lines["commit"].unique())
    counts = len(final_lines(lines).groupby(["seed", "replicate"]))
    return [
        ("suite", f"{suite.name}, {len(suite.problems)} problems"),
        ("budget", budget or "none"),
        ("replicates", f"up to {counts}"),
        ("code", ", ".join(commits) or "–"),
        ("seconds of kept rows", suite.machine or "–"),
    ]
