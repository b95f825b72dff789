"""A failed figure, table or file does not affect scores and is reported in a line."""

import json
import math

import pytest
from support.runs.configured import repeatable

from components.posteriors.draws import Draws
from components.problems import epochs
from runner.execution import replicate
from runner.execution.execute import run
from runner.record.facts import read
from runner.record.lines import read_lines

RUN = ["+experiment=multitask_toy", "smoke=true", "steps=4"]


class Broken:
    """A figure that cannot be drawn."""

    def __call__(self, *_):
        raise OverflowError("too large\nto be drawn")


def test_failed_figure_is_one_line(make_job, monkeypatch, tmp_path):
    whole, _ = run(make_job(*RUN, f"output_dir={tmp_path / 'whole'}"))
    first = epochs.draw_each
    monkeypatch.setattr(
        epochs, "draw_each", lambda figures, *given: first([Broken(), *figures], *given)
    )
    executed, _ = run(make_job(*RUN))
    facts = read(executed.job.folder)
    assert facts["state"] == "done"
    assert "figure Broken is left out: too large" in facts["left_out"][0]
    assert repeatable(facts["result"]) == repeatable(whole.record.facts["result"])
    assert facts["checks"] == whole.record.facts["checks"]
    figures = [
        {p.name for p in (executed_run.job.folder / "figures").glob("*")}
        for executed_run in (whole, executed)
    ]
    assert figures[0] == figures[1] != set()  # the others are drawn
    assert "left_out" not in whole.record.facts


def test_unwritable_figures_and_files_are_reported(make_job, monkeypatch):
    def fails(*_, **__):
        raise ValueError("no such colour")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fails)
    monkeypatch.setattr(Draws, "artefacts", fails)
    job = make_job("+experiment=mog", "smoke=true")
    run(job)
    facts = read(job.folder)
    assert facts["state"] == "done"
    left_out = "\n".join(facts["left_out"])
    for what in ("figure trace", "the file of the posterior"):
        assert f"{what} is left out: no such colour (ValueError)" in left_out


def test_scores_are_saved_before_figures_are_drawn(make_job, monkeypatch):
    """A run killed while drawing has its scores on disk, and the next run draws the rest."""
    job = make_job(*RUN, "replicates=2")
    kept = {}

    def interrupt(folder, *_):
        kept.update(json.loads((folder / "run.json").read_bytes()))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(replicate, "write_artefacts", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(job)
    assert kept["finished"]["0"]["rmse"] > 0
    assert kept["checks"]["0"][0]["check"] == "scores are finite"
    assert read(job.folder)["unwritten"] == 0
    run(job)
    facts = read(job.folder)
    assert facts["state"] == "done"
    assert "unwritten" not in facts
    assert repeatable(facts["finished"]["0"]) == repeatable(kept["finished"]["0"])
    assert (job.folder / "figures").exists()
    finals = [line["replicate"] for line in read_lines(job.folder) if line["phase"] == "final"]
    assert finals == [0, 1]


def test_tasks_without_test_labels_do_not_fail_the_run(make_job, tmp_path):
    """First task b has no test label, then no task has one."""
    for b, a in (("", "0.5"), ("", "")):
        table = tmp_path / f"table{a}.csv"
        rows = [f"{x / 10},{x / 5 + x % 3},{x % 4},train" for x in range(12)] + [
            f"{x / 7},{a},{b},test" for x in range(4)
        ]
        table.write_text("\n".join(["x,a,b,split", *rows]) + "\n")
        job = make_job(
            "dataset=csv",
            f"dataset.path={table}",
            "dataset.targets=[a,b]",
            "dataset.split=split",
            "model=mlp",
            "model.widths=[3]",
            "inference=map",
            "steps=3",
        )
        executed, result = run(job)
        facts = read(job.folder)
        assert facts["state"] == "done"
        assert "left_out" not in facts
        assert math.isfinite(result["rmse"][0]) is bool(a)
        assert math.isfinite(result["rmse/a"][0]) is bool(a)
        assert math.isnan(result["rmse/b"][0])
        assert executed.record.facts["checks"]["0"][0]["passed"] is True
