"""The card of a fitted model in Markdown: data, scores, checks, threat, columns, citation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.disk.plain_file import read_plain
from runner.disk.yaml_limits import read_yaml
from runner.python.export.model_file import ModelFacts
from runner.record.checks import combine_checks, verdict
from runner.record.facts import CHOSEN_ROLES
from runner.report.compared_record import ComparedRecord
from runner.report.comparison import results_table, scores_table
from runner.report.pages import render
from runner.report.scores.cells import FAILED_CHECK_MARK

TEMPLATE = Path(__file__).with_name("card.md.j2")
ANSWERS = {
    "labels": "labels of new rows",
    "forecasts": "forecasts of the series after its end",
    "topics": "proportions of topics in new documents",
    "clusters": "clusters and densities of new rows",
}


def write_card(facts: ModelFacts, record: Path, compared: ComparedRecord, kind: str) -> str:
    """The card of a model from its facts and the record of its run."""
    path = record / "references.bib"
    citation = read_plain(path).decode("utf-8", "replace").strip() if path.is_file() else ""
    values = {
        "facts": facts,
        "kind": kind,
        "predicts": ANSWERS[kind],
        "config": read_yaml(record / "config.yaml"),
        "roles": CHOSEN_ROLES,
        "run": compared.facts,
        "scores": results_table(scores_table({"run": compared}))["run"].items(),
        "step": compared.step,
        "checks": combine_checks(compared.facts),
        "verdict": verdict(compared.facts),
        "mark": FAILED_CHECK_MARK,
        "columns": _list_columns(facts["problem"]),
        "citation": citation.replace("```", "'''"),
    }
    return render(TEMPLATE, values)


def _list_columns(problem: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Name, type and texts of the columns of rows to be predicted, from the stored problem."""
    fields = problem.get("fields", {})
    splits = fields.get("splits")
    stored = (splits[0]["fields"] if splits else fields).get("columns") or {}
    columns = stored.get("fields", {}).get("columns", {"tuple": []})["tuple"]
    return [
        (column["name"], column["type"], ", ".join(column["levels"]["tuple"]))
        for column in (column["fields"] for column in columns)
    ]
