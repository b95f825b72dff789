"""Terminal output of a run: a tree of its components, a table of results, locations of its files.

``progress`` shows its steps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from rich.tree import Tree

from components.metrics.names import without_costs
from runner.catalogue.settings import Values
from runner.compose.expand import all_parts, component_defaults, parse_keys
from runner.record.checks import combine_checks, tally
from runner.record.facts import REQUIRED_KEY_TYPES, Facts, ScoreLists
from runner.statistics.standard_error import mean_se
from runner.terminal import json_lines
from runner.terminal.printer import announce, format_estimate, note, out
from runner.terminal.tables import (
    columns_of_terminal,
    measure_words,
    print_boxed,
    print_fact,
    print_json,
    print_marked,
)
from runner.terminal.typed_values import format_typed

if TYPE_CHECKING:
    from runner.compose.resolve import ResolvedConfig
    from runner.tracking.handover import Handover
PRINTED_TYPES = {"record": str, **REQUIRED_KEY_TYPES}  # of the object of a run
WIDE = 8  # largest number of readable columns
TREE_WIDTH = 100  # columns at which the tree of settings is folded
FILE_WIDTH = 104  # columns of a table of results in a file, enough for seven sizes of an attack
PARTS = 20  # largest number of tasks or parameters in the table of results
VERDICTS = {True: ("passed", "green"), False: ("FAILED", "bold red"), None: ("not checked", "dim")}


def show_composition(job: ResolvedConfig) -> None:
    """Show the composition as a tree: each component with its keys, changed ones first."""
    if json_lines.is_installed():
        return
    settings = job.settings
    tree = Tree(Text.assemble((settings.experiment, "bold"), f"  {settings.description or ''}"))
    branches = dict[str, tuple[Tree, Values]]()  # with the values of each component, by its key
    for role, name in job.choice.items():
        for path, declared, values in all_parts(role, job.config[role]) if name else ():
            where = re.sub(r"\.\d+", "", path)  # the newest item of a list holds the next parts
            above, _, key = where.rpartition(".")
            parent, inherited = branches.get(above, (tree, {}))
            defaults = component_defaults(declared.role, declared.name)
            defaults = parse_keys(defaults, declared, path)
            shown = {
                k: v
                for k, v in values.items()
                if k != "name"
                and not (v and k in declared.nested_roles)
                and inherited.get(k, ...) != v
            }
            branch = parent.add(_line(key, declared.name, shown, defaults))
            branches[where] = branch, values
    keys = ("seed", "replicates", "steps", "device", "dtype", "threads", "smoke")
    run = {key: getattr(settings, key) for key in keys}
    tree.add(_line("run", job.signature, run, run))
    out.print(tree, width=min(out.width, TREE_WIDTH))
    for text in job.notes:
        out.print(text, style="yellow")


def _line(key: str, name: str, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> Text:
    """Text of a branch of the tree: values that differ from the defaults, then the others dimmed."""
    texts = [
        (f"  {k}={format_typed(v)}", "dim" if k in defaults and defaults[k] == v else "")
        for k, v in values.items()
    ]
    texts.sort(key=lambda text: text[1])
    return Text.assemble((key, "cyan"), " ", (name, "bold"), *texts)


def show_facts(values: Mapping[str, str]) -> None:
    """Show facts about the data in one line."""
    facts = [Text.assemble((key, "cyan"), f" {value}") for key, value in values.items()]
    out.print(Text("  ").join(facts))


def show_record(job: ResolvedConfig, facts: Facts, handover: Handover | None) -> None:
    """Show the results, checks and files of a run; its facts with ``--json``."""
    if json_lines.is_installed():
        print_json([{"record": job.folder} | facts])
        return
    # imported late because it loads pydantic's validation of tables
    from runner.statistics.published import published_scores

    settings = job.settings
    result = facts["result"]
    if settings.smoke:
        show_result(job, result)
        note("smoke run: a test that everything works; its scores are meaningless")
    else:
        printed, reason = published_scores(settings.paper_tables, job.config, job.data)
        show_result(job, result, printed, reason)
    for about, subject in (("run", "run"), ("attack", "security evaluation")):
        if rows := combine_checks(facts, about):
            show_checks(f"checks of the {subject}", rows)
    show_whereabouts(job.folder, handover, facts.get("artefacts", ()), facts.get("left_out", ()))


def show_result(
    job: ResolvedConfig,
    result: ScoreLists,
    printed: Mapping[str, str] | None = None,
    reason: str = "",
) -> None:
    """Show mean and standard error of headline metrics; metrics by task have a row per task."""
    result = without_costs(result)
    n = max(map(len, result.values()), default=0)
    repetitions = f"{n} replicates: mean ± SE" if n > 1 else "one replicate"
    pairs = [name.partition("/")[::2] for name in result]
    headline = [name for name, part in pairs if not part]
    parts = list(dict.fromkeys(part for _, part in pairs if part))
    names = list(dict.fromkeys([*headline, *(name for name, _ in pairs)]))
    choice_text = f", {job.choice['model']}, {job.choice['inference']} ({repetitions})"
    out.print(Text.assemble("\n", (job.data, "bold"), choice_text))
    ours = {
        name: "" if all(map(math.isnan, values)) else format_estimate(*mean_se(values))
        for name, values in result.items()
    }
    rows = _score_rows(ours, printed or {}, names, parts[:PARTS])
    cells = [["", *names], *rows[0 if headline else 1 :]]
    width = columns_of_terminal() or FILE_WIDTH
    if len(names) > WIDE or measure_words(cells) > width:
        cells = [list(row) for row in zip(*cells, strict=True)]
    print_boxed(cells, width)
    if rest := parts[PARTS:]:
        out.print(f"{len(rest)} more in run.json: {', '.join(rest[:3])}, …")
    if printed and reason:
        out.print(f"published {reason}", style="yellow")


def _score_rows(
    ours: Mapping[str, str], printed: Mapping[str, str], names: list[str], parts: list[str]
) -> list[list[str]]:
    """Rows for the total and for each part: a title, and a cell for each metric; published numbers
    are below ours.
    """
    rows = []
    for part in ("", *parts):
        scores = [f"{name}/{part}".rstrip("/") for name in names]
        rows.append([part or "all", *(ours.get(score, "") for score in scores)])
        published = [printed.get(score, "") for score in scores]
        if any(published):
            rows.append([f"{part}, published".removeprefix(", "), *published])
    return rows


def show_checks(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Show checks and their subject: a verdict, the check and its detail."""
    verdict = "passed" if [row["passed"] for row in rows] == [True] else tally(rows)
    style = "red" if False in (row["passed"] for row in rows) else ""
    out.print(Text.assemble("\n", (title, "bold"), ": ", (verdict, style)))
    words = [VERDICTS[row["passed"]] for row in rows]
    longest = max(len(word) for word, _ in words)
    widest = max(cell_len(row["check"]) for row in rows)
    for (word, colour), row in zip(words, rows, strict=True):
        check = f"  {set_cell_size(row['check'], widest)}  "
        print_marked(f"{word:<{longest}}", colour, check, row["detail"])


def show_whereabouts(
    folder: Path,
    handover: Handover | None,
    artefacts: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> None:
    """Show the locations of files, failed artefacts, and how to view the run in MLflow."""
    figures = sorted((folder / "figures").glob("*.png"))
    out.print(f"record   {folder}")
    if figures:
        print_fact("figures  ", f"{', '.join(f.name for f in figures)} in {folder / 'figures'}")
    for name in artefacts:
        out.print(f"file     {folder / name}")
    for line in left_out:
        note(line)
    if handover is None or announce_trouble(handover):
        return
    if not handover.complete:
        out.print("MLflow   uploading in the background; runner sync waits for it")
    out.print(f"MLflow   {handover.page or handover.ui_command}", soft_wrap=True)


def announce_trouble(handover: Handover | None) -> bool:
    """Show the reason why a run is not in MLflow, if any."""
    if handover is None or not (trouble := handover.trouble):
        return False
    announce(
        "MLflow is not reachable",
        f"{trouble}\nThe local record above is complete. To upload it later, run runner sync; it uses the server in "
        "MLFLOW_TRACKING_URI.",
    )
    return True
