"""Reports of parts of a study, of incomplete studies, and of smoke runs."""

import csv

import pytest
from support.runs.small_study import NOISE, record

from runner.errors import ConfigError
from runner.report.command import main
from runner.report.selection import folder_name, restrict


def test_only_restricts_rows_columns_and_runs(study):
    part = restrict(study, ["label=sMDGP,n_train=1000"])
    assert [run.name for run in part.runs] == [
        "sMDGP, as published n_train=1000",
        "sMDGP, tuned n_train=1000",
    ]
    (table,) = part.study.tables
    assert table.rows == ["sMDGP, as published", "sMDGP, tuned"]
    assert part.study.columns(table) == ["1000"]
    assert part.study.reference == "sMDGP, tuned"
    assert restrict(study, ["model=igp"]).study.reference is None
    with pytest.raises(ConfigError, match="igpp, did you mean igp"):
        restrict(study, ["model=igpp"])


def test_rows_that_are_divisors_stay_as_inputs(study):
    table = study.study.tables[0].model_copy(update={"over": "sMDGP, tuned"})
    ratios = study.study.model_copy(update={"tables": [table]})
    part = restrict(type(study)(**{**vars(study), "study": ratios}), ["model=igp"])
    assert {run.row for run in part.runs} == {"iGP, tuned", "sMDGP, tuned"}
    assert part.study.tables[0].rows == ["iGP, tuned"]


def test_partial_report_lists_finished_and_missing_runs(study, tmp_path, capsys):
    record(study, "b", 1000, 0.1 + NOISE)
    arguments = ["report", "small", "--output-dir", str(tmp_path)]
    assert main([*arguments, "--only", "label=sMDGP,preset=tuned"]) == 0
    output = capsys.readouterr().out
    missing = "1 of 2 runs are done. Missing: sMDGP, tuned n_train=100 (not started)."
    assert missing in " ".join(output.split())
    folder = tmp_path / "small/report" / folder_name(["label=sMDGP,preset=tuned"])
    page = (folder / "small.html").read_text()
    assert "Part of the study: --only label=sMDGP,preset=tuned." in page
    assert missing in page
    assert "iGP" not in (folder / "small.md").read_text()
    with pytest.raises(ConfigError, match="study sarcos_cost was never launched under"):
        main(["report", "sarcos_cost", "--output-dir", str(tmp_path), "--only", "model=igp"])


def test_smoke_marks_tables_and_lines(study, tmp_path, capsys):
    record(study, "a", 1000, 0.1 + NOISE, smoke=True)
    record(study, "b", 1000, 0.1 + NOISE)
    assert main(["report", "small", "--output-dir", str(tmp_path)]) == 0
    assert "no number here is a result" in capsys.readouterr().out
    folder = tmp_path / "small/report"
    assert '<span class="sign">(smoke run)</span></h2>' in (folder / "small_smoke.html").read_text()
    assert "## NLPP (smoke run)" in (folder / "small_smoke.md").read_text()
    lines = list(csv.DictReader((folder / "small_smoke.csv").open()))
    assert [line["row"] for line in lines if line["smoke"] == "1"] == ["sMDGP, as published"]
    assert len(lines) == 8
