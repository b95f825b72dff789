"""Kept scores: a report from scores and origin has the same content as a report from records."""

from dataclasses import replace

import pytest
from support.runs.small_study import NOISE, RHAT, STUDY, record

from runner.errors import ConfigError
from runner.report import report
from runner.report.differs import differs
from runner.report.origin import origin_path, read_kept_scores
from runner.report.results import layout_table
from scripts import results
from scripts.prose import origin_notes
from scripts.prose import scores as kept_scores


@pytest.fixture
def scores_file(study, tmp_path):
    """A report of records with failed checks in one run and another failed run."""
    record(study, "a", 1000, 0.20 + NOISE, checks={"0": [RHAT]})
    record(study, "b", 1000, -0.20 + NOISE)
    record(study, "c", 1000, state="failed", error="step 3: Cholesky failed")
    report.write("small", STUDY, study, tmp_path / "first")
    return tmp_path / "first" / "small_replicates.csv"


def test_report_from_kept_scores_equals_that_of_records(scores_file, tmp_path):
    again = read_kept_scores({"kept": scores_file}, STUDY)
    report.write("small", STUDY, None, tmp_path / "second", again)
    first, second = ((tmp_path / folder / "small.md").read_text() for folder in ("first", "second"))
    assert "0.20(0.01)†" in second
    assert "not run (failed: step 3: Cholesky failed)" in second
    assert second == first
    alone = tmp_path / "alone_replicates.csv"
    alone.write_bytes(scores_file.read_bytes())
    (laid,) = layout_table(STUDY, None, read_kept_scores({"kept": alone}, STUDY))
    assert not any(cell.failed for _, line in laid.rows for cell in line), (
        "no origin to compare with"
    )
    origin_path(scores_file).write_text("{")
    with pytest.raises(ConfigError, match=r"small_origin\.json cannot be read"):
        read_kept_scores({"kept": scores_file}, STUDY)


def test_rows_with_earlier_scores_are_not_missing(scores_file, study, tmp_path):
    empty = replace(study, output_dir=tmp_path / "elsewhere")
    earlier = read_kept_scores({"kept": scores_file}, STUDY)
    report.write("small", STUDY, empty, tmp_path / "second", earlier)
    page = (tmp_path / "second" / "small.md").read_text()
    assert "runs are done" not in page
    assert "1 row without a score: iRF." in page
    again = read_kept_scores({"kept": tmp_path / "second" / "small_replicates.csv"}, STUDY)
    report.write("small", STUDY, None, tmp_path / "third", again)
    third = (tmp_path / "third" / "small.md").read_text()
    assert third.count("without a score: iRF.") == 1


def test_recomputed_scores_replace_the_earlier_provenance(scores_file, study, tmp_path):
    earlier = read_kept_scores({"kept": scores_file}, STUDY)
    report.write("small", STUDY, study, tmp_path / "second", earlier)
    page = (tmp_path / "second" / "small.md").read_text()
    assert "arlier scores" not in page


def test_differences_from_the_reference_row_are_listed(study):
    def add_config(run):
        config = {
            "inference": {"name": "dsvi", "lr": 0.01},
            "dataset": {"n_train": run.cell["dataset.n_train"]},
        }
        if run.row == "iGP, tuned":
            config["inference"] = {
                "name": "lbfgs",
                "lr": 1.0 / run.cell["dataset.n_train"],
                "history": 10,
            }
        return replace(run, config=config)

    differences = differs(replace(study, runs=[add_config(run) for run in study.runs]))
    assert differences == {
        "iGP, tuned": "inference.name=lbfgs, inference.lr=0.01|0.001, settings that sMDGP, tuned does not have: 1"
    } or differences == {
        "iGP, tuned": "inference.name=lbfgs, inference.lr=0.001, settings that sMDGP, tuned does not have: 1"
    }
    assert differs(None) == {}


def test_smoke_runs_are_marked_in_title_files_and_figures(study, tmp_path):
    record(study, "a", 1000, 0.20 + NOISE, smoke=True)
    record(study, "b", 1000, 0.30 + NOISE)
    written, _ = report.write("small", STUDY, study, tmp_path / "out", paper=True)
    pages = [path for path in written if path.suffix in (".html", ".md")]
    assert {path.name for path in pages} == {"small_smoke.html", "small_smoke.md"}
    for page in pages:
        assert "(smoke run)" in page.read_text(encoding="utf-8").split("##")[0]
        assert "its numbers are not results" in page.read_text(encoding="utf-8")
    assert '"text":"smoke run"' in pages[0].read_text(encoding="utf-8") + pages[1].read_text(
        encoding="utf-8"
    )
    assert all("_smoke" in path.name for path in written if path.name != "references.bib"), written
    assert (
        "Smoke run, no result." in (tmp_path / "out" / "paper" / "table_nlpp_smoke.tex").read_text()
    )


def test_results_are_generated_from_scores(scores_file, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "results"
    folder.mkdir()
    for end in ("replicates.csv", "origin.json"):
        (folder / f"small_{end}").write_bytes(scores_file.with_name(f"small_{end}").read_bytes())
    monkeypatch.setattr(results, "FOLDER", folder)
    monkeypatch.setattr(origin_notes, "read_history", frozenset)
    for module in (results, kept_scores):
        monkeypatch.setattr(module, "load_study", lambda name: STUDY)
    assert results.main(["--check"]) == 0  # without a page so far
    assert results.main(["small"]) == 0
    page = folder / "small.md"
    assert (
        "![NLPP against training points N, mean ± SE; data: sarcos](small_curve.png)"
        in page.read_text()
    )
    assert (folder / "small_curve.png").exists()
    assert results.main(["--check"]) == 0
    page.write_text(page.read_text().replace("0.20(0.01)", "0.10(0.01)"))
    assert results.main(["--check"]) == 1
    assert "small: differs: small.md" in capsys.readouterr().out
    assert results.main([]) == 0
    assert "0.20(0.01)" in page.read_text()


def test_identical_figures_are_stored_once():
    import io

    from matplotlib.figure import Figure

    def png(height, nudge=0.0):
        figure = Figure(figsize=(3, 2), layout="constrained")
        buffer = io.BytesIO()
        figure.subplots().plot([0, 1, 2], [0, height, 1 + nudge])
        figure.savefig(buffer, format="png")
        return buffer.getvalue()

    assert results.same_picture(png(1.0), png(1.0, 1e-3))
    assert not results.same_picture(png(1.0), png(-3.0))
