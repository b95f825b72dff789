"""The card of a fitted model in Markdown: data, scores, checks, threat, columns, citation."""

from __future__ import annotations

from pathlib import Path

from runner.disk.plain_file import read_plain
from runner.disk.yaml_limits import read_yaml
from runner.python.export.answers import Answers, TopicAnswers
from runner.python.export.model_file import ModelFacts
from runner.record.checks import combine_checks, verdict
from runner.record.facts import CHOSEN_ROLES
from runner.report.compared_record import ComparedRecord
from runner.report.comparison import results_table, scores_table
from runner.report.pages import render
from runner.report.scores.cells import FAILED_CHECK_MARK

TEMPLATE = Path(__file__).with_name("card.md.j2")


def write_card(facts: ModelFacts, record: Path, compared: ComparedRecord, answers: Answers) -> str:
    """The card of a model from its facts and the record of its run."""
    path = record / "references.bib"
    citation = read_plain(path).decode("utf-8", "replace").strip() if path.is_file() else ""
    named = None if isinstance(answers, TopicAnswers) else answers.problem.columns
    values = {
        "facts": facts,
        "answers": answers,
        "config": read_yaml(record / "config.yaml"),
        "roles": CHOSEN_ROLES,
        "run": compared.facts,
        "scores": results_table(scores_table({"run": compared}))["run"].items(),
        "step": compared.step,
        "checks": combine_checks(compared.facts),
        "verdict": verdict(compared.facts),
        "mark": FAILED_CHECK_MARK,
        "columns": named.columns if named else (),
        "citation": citation.replace("```", "'''"),
    }
    return render(TEMPLATE, values)
