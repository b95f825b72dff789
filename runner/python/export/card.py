"""The card of a fitted model in Markdown: data, scores, checks, threat, columns, citation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runner.disk.plain_file import read_plain
from runner.disk.yaml_limits import read_yaml
from runner.python.export.model_file import ModelFacts
from runner.record.checks import combine_checks, verdict
from runner.record.facts import CHOSEN_ROLES
from runner.report.compared_record import ComparedRecord
from runner.report.comparison import result_rows
from runner.report.context import FAILED_CHECK_MARK
from runner.terminal.plain import plain

MOST_COLUMNS = 50  # columns that are each described
ANSWERS = {
    "labels": "labels of new rows",
    "forecasts": "forecasts of the series after its end",
    "topics": "proportions of topics in new documents",
    "clusters": "clusters and densities of new rows",
}


def write_card(facts: ModelFacts, record: Path, compared: ComparedRecord, kind: str) -> str:
    """The card of a model from its facts and the record of its run."""
    config = read_yaml(record / "config.yaml")
    sections = [
        f"# {facts['experiment']}\n",
        _summary(facts, compared, config, kind),
        _scores(compared),
        _checks(compared.facts),
        _threat(config),
        _columns(facts["problem"]),
        _use(kind),
        _citation(record),
    ]
    return "\n".join(section for section in sections if section)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(_escape(cell) for cell in line)} |\n" for line in lines)


def _escape(cell: str) -> str:
    return plain(" ".join(cell.split())).replace("|", "\\|")


def _summary(facts: ModelFacts, compared: ComparedRecord, config: dict[str, Any], kind: str) -> str:
    rows = [("predicts", ANSWERS[kind]), ("data", str(facts["data"]))]
    rows += [(role, config[role]["name"]) for role in CHOSEN_ROLES if config.get(role)]
    state = compared.facts["state"]
    rows += [
        ("run", f"{facts['run']}, {state}, step {facts['step']:,}, replicate {facts['replicate']}"),
        ("seed", str(config["seed"])),
        ("dtype", str(config["dtype"])),
        (
            "training rows",
            "in this file: the posterior needs them"
            if facts["holds_training_rows"]
            else "not in this file, only their shapes",
        ),
        ("runner", str(facts["runner"])),
        ("trained with", ", ".join(f"{k} {v}" for k, v in facts["versions"].items())),
    ]
    return _table(("", ""), rows)


def _scores(compared: ComparedRecord) -> str:
    """Scores over the replicates, marked where a check failed."""
    if not compared.result:
        return "## Scores\n\nNone yet: the run has not been evaluated.\n"
    failed = any(check["passed"] is False for check in combine_checks(compared.facts))
    mark = FAILED_CHECK_MARK if failed else ""
    rows = [(name, f"{value}{mark}") for name, value in result_rows([compared])]
    note = f"\n{FAILED_CHECK_MARK} a check of the run failed, see below.\n" if failed else ""
    if compared.step is not None:
        note += f"\nOf the evaluation at step {compared.step:,}: the run is not done.\n"
    table = _table(("score", "mean ± standard error over replicates"), rows)
    return f"## Scores\n\nOn the test data of the run.\n\n{table}{note}"


def _checks(facts: dict[str, Any]) -> str:
    rows = [
        (check["about"], check["check"], _VERDICTS[check["passed"]], str(check["detail"] or ""))
        for check in combine_checks(facts)
    ]
    if not rows:
        return "## Checks\n\nNone recorded.\n"
    return f"## Checks\n\n{verdict(facts)}.\n\n" + _table(("about", "check", "", "detail"), rows)


_VERDICTS = {True: "passed", False: f"failed {FAILED_CHECK_MARK}", None: "not checked"}


def _threat(config: dict[str, Any]) -> str:
    attacker = config.get("attacker")
    if not attacker:
        return "## Threat\n\nNone: the run has no attacker.\n"
    keys = [(k, str(v)) for k, v in attacker.items() if not isinstance(v, dict)]
    return "## Threat\n\nThe attacker that the scores were computed under.\n\n" + _table(
        ("key", "value"), keys
    )


def _columns(problem: Any) -> str:
    """Columns of rows to be predicted, from the stored problem."""
    fields = problem.get("fields", {})
    splits = fields.get("splits", {}).get("list")
    stored = (splits[0]["fields"] if splits else fields).get("columns", {})
    columns = stored.get("fields", {}).get("columns", {}).get("tuple")
    if columns is None:
        return ""
    rows = []
    for column in columns[:MOST_COLUMNS]:
        values = column["fields"]
        levels = ", ".join(level["value"] for level in values["levels"]["tuple"])
        rows.append((values["name"]["value"], values["type"]["value"], levels))
    if len(columns) > MOST_COLUMNS:
        rows.append((f"and {len(columns) - MOST_COLUMNS} more", "", ""))
    return "## Columns\n\n" + _table(("column", "type", "texts"), rows)


def _use(kind: str) -> str:
    rows = "--horizon 12" if kind == "forecasts" else "rows.csv"
    argument = "horizon=12" if kind == "forecasts" else '"rows.csv"'
    return (
        f"## Use\n\n    runner predict model.zip {rows} --to predictions.csv\n\n"
        f'    from runner import load_model\n    load_model("model.zip").predict({argument})\n'
    )


def _citation(record: Path) -> str:
    path = record / "references.bib"
    if not path.is_file():
        return ""
    text = plain(read_plain(path).decode("utf-8", "replace").strip()).replace("```", "'''")
    return f"## Citation\n\n```bibtex\n{text}\n```\n" if text else ""
