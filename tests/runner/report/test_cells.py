"""Cells of a study's tables from records: scores, verdicts, bold type, and reasons why one is empty."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.runs.small_study import (
    NOISE,
    NOISE_OF_EIGHT,
    STUDY,
    find_cells,
    line,
    record,
    redefine,
)

from runner.errors import RunnerWarning
from runner.record.facts import read
from runner.record.lines import read_lines
from runner.record.scores import read_scores, step_times
from runner.report.scores.earlier import HEADER, PROTOCOL
from runner.study.snapshot import FrozenRun

PUBLISHED, TUNED, IGP, IRF = (row.name for row in STUDY.rows)


def test_rows_with_a_published_number_have_verdicts(study):
    # published: 0.15(0.1) twice, 1.28(0.07), and none
    for experiment, shift in (("a", 0.20), ("b", -0.20), ("c", 1.60), ("d", 0.50)):
        record(study, experiment, 1000, shift + NOISE)
    cells = find_cells(study)
    words = [cells[row, "1000"].verdict.word for row in (PUBLISHED, TUNED, IGP, IRF)]
    assert words == ["agrees", "better", "worse", "not published"]
    in_se = 0.05 / np.hypot(0.1, NOISE.std(ddof=1) / np.sqrt(6))
    assert cells[PUBLISHED, "1000"].verdict.in_se == pytest.approx(in_se)
    assert str(cells[IGP, "100"].verdict) == "not run"


def test_rows_of_parts_of_one_run_read_their_own_scores(study):
    parts = [
        row.model_dump() | {"part": part}
        for row, part in zip(STUDY.rows[:2], ("0.5", "1"), strict=True)
    ]
    result = {"nlpp/0.5": [0.2] * 6, "nlpp/1": [0.4] * 6, "nlpp": [9.0] * 6}
    for experiment in "ab":
        record(study, experiment, 1000, result=result, replicates=6)
    plain = STUDY.tables[0].model_dump()
    tables = [plain, plain | {"name": "ratios", "over": PUBLISHED}]
    whole = redefine(study, rows=[*parts, *STUDY.model_dump()["rows"][2:]], tables=tables)
    means = [find_cells(whole)[row, "1000"].summary.mean for row in (PUBLISHED, TUNED)]
    assert means == pytest.approx([0.2, 0.4])
    assert find_cells(whole, table=1)[TUNED, "1000"].summary.mean == pytest.approx(2.0)


def test_diverged_run_keeps_the_finite_part_of_its_result(study):
    error = "scores are not finite: nlpp nan in 1 of 7 replicates"
    record(study, "a", 1000, [*(0.20 + NOISE), np.nan], state="diverged", error=error)
    cell = find_cells(study)[PUBLISHED, "1000"]
    assert (cell.summary.n, cell.summary.lost) == (6, 1)
    assert "1 of 7 replicates" in cell.verdict.why


def test_scores_on_other_data_are_never_compared(study):
    record(study, "a", 1000, 0.15 + NOISE, data="sarcos-test-file")
    record(study, "b", 1000, 0.15 + NOISE, data="sarcos-sim")
    cells = find_cells(study)
    for row, data in ((PUBLISHED, "sarcos-test-file"), (TUNED, "sarcos-sim")):
        verdict = cells[row, "1000"].verdict
        assert str(verdict) == f"not comparable (other data: {data})"
        assert verdict.in_se is None
    assert not any(cell.bold for cell in cells.values())  # no best row for two kinds of data


def test_cells_without_a_verdict_have_reasons(study):
    record(study, "a", 100, state="failed", error="step 3: Cholesky failed")
    record(study, "a", 1000, 0.15 + NOISE, smoke=True)
    facts = {"state": "interrupted", "error": "interrupted at step 7", "replicates": 6}
    record(study, "b", 100, [1.0], finished={"0": {"nlpp": 1.2}, "1": {"nlpp": 1.3}}, **facts)
    record(study, "b", 1000, [0.1], replicates=1)
    record(study, "c", 100, [1.0, 1.1, np.nan, 1.2, 1.0, 1.1])
    cells = find_cells(study)
    expected = {
        (PUBLISHED, "100"): "not run (failed: step 3: Cholesky failed)",
        (PUBLISHED, "1000"): "not comparable (a smoke run)",
        (TUNED, "100"): "not comparable (2 of 6 replicates so far)",
        (TUNED, "1000"): "not comparable (one replicate has no standard error)",
    }
    assert {place: str(cells[place].verdict) for place in expected} == expected
    assert cells[TUNED, "100"].summary.mean == pytest.approx(1.25)
    assert "1 of 6 replicates" in cells[IGP, "100"].verdict.why


def test_published_times_are_never_compared(study):
    lines = [
        # an evaluation between 20 and 30
        line(step, "train", r, 5.0 + 0.004 * step + (100 if step >= 30 else 0))
        for r in range(2)
        for step in (1, 10, 20, 30, 40)
    ]
    record(study, "a", 1000, 0.1 + NOISE, lines)
    table = {
        "name": "cost",
        "title": "Time",
        "columns": {"milliseconds": "milliseconds_per_step"},
        "better": "lower",
        "published": "boustati_table_a_3",
    }
    timed = FrozenRun("x", PUBLISHED, {}, [], "a", "a1000", "sarcos")
    again = replace(redefine(study, grid={}, tables=[table], figures=[]), runs=[timed])
    cell = find_cells(again)[PUBLISHED, "milliseconds"]
    assert cell.values == pytest.approx({(0, 0): 4.0, (0, 1): 4.0})
    assert str(cell.verdict) == "not comparable (timed on another machine)"


def test_record_has_the_time_of_every_replicate(make_job):
    from runner.execution.execute import run

    job = make_job("+experiment=digits_fgsm", "smoke=true", "replicates=2", "record_every=1")
    run(job)
    assert set(step_times(read_lines(job.folder))) == {0, 1}


def test_bold_and_paired_differences_are_computed(study):
    apart = np.array([1, -1, 2, -2, 0.5, -0.4, 0.3, -0.2]) * 1e-3
    record(study, "a", 1000, 0.30 + NOISE_OF_EIGHT)
    record(study, "b", 1000, 0.10 + NOISE_OF_EIGHT)
    record(study, "c", 1000, 0.10 + NOISE_OF_EIGHT + apart)
    cells = find_cells(study)
    assert [cells[row, "1000"].bold for row in (PUBLISHED, TUNED, IGP)] == [False, True, True]
    no_rivals = redefine(study, tables=[STUDY.tables[0].model_dump() | {"bold": False}])
    assert not any(cell.bold for cell in find_cells(no_rivals).values())
    against = cells[PUBLISHED, "1000"].against
    assert (against.difference, against.p) == pytest.approx((0.2, 2 / 2**8))
    assert cells[TUNED, "1000"].against is None


def test_ratio_table_divides_by_replicate(study):
    base = 1.0 + np.arange(6)
    record(study, "b", 100, base)
    record(study, "a", 100, 0.9 * base)
    record(study, "c", 100, (0.5 * base)[:4])
    changes = {"over": TUNED, "published": None, "rows": [PUBLISHED, TUNED, IGP]}
    table = STUDY.tables[0].model_dump() | changes
    cells = find_cells(redefine(study, tables=[table]))
    ratios = {row: list(cells[row, "100"].values.values()) for row in (PUBLISHED, TUNED, IGP)}
    assert ratios == {
        PUBLISHED: pytest.approx([0.9] * 6),
        TUNED: [1.0] * 6,
        IGP: pytest.approx([0.5] * 4),
    }
    assert not cells[IGP, "1000"].values
    assert (IRF, "100") not in cells


def test_rows_without_a_model_name_the_printed_row(study):
    record(study, "c", 1000, 0.15 + NOISE)  # model igp, next to the row smdgp: 0.15(0.1)
    rows = [row.model_dump() for row in STUDY.rows]
    rows[2]["published_row"] = "smdgp"
    cells = find_cells(redefine(study, rows=rows))
    assert cells[IGP, "1000"].verdict.word == "agrees"
    # the model by default
    assert [cells[row, "1000"].number.text for row in (IGP, TUNED)] == ["0.15(0.1)"] * 2


def test_seeds_are_pooled(study):
    runs = [
        FrozenRun(f"r{s}", IGP, {"dataset.n_train": 1000, "seed": s}, [], "c", f"c{s}", "sarcos")
        for s in (0, 1)
    ]
    pooled = replace(redefine(study, grid={"dataset.n_train": [1000], "seed": [0, 1]}), runs=runs)
    record(pooled, "c", 0, [1.0, 2.0])
    record(pooled, "c", 1, [3.0, 6.0], seed=1)
    expected = {(0, 0): 1.0, (0, 1): 2.0, (1, 0): 3.0, (1, 1): 6.0}
    assert find_cells(pooled)[IGP, "1000"].values == expected


def make_earlier(data, scores):
    """Earlier scores of a cell by replicate."""
    lines = [["nlpp", IGP, "1000", data, 0, r, score, ""] for r, score in scores.items()]
    return pd.DataFrame(lines, columns=[*HEADER, PROTOCOL])


def test_record_precedes_an_earlier_score(study):
    record(study, "c", 1000, [1.0, 2.0])
    own_cells = {(0, 0): 1.0, (0, 1): 2.0}
    # scores on other data are excluded
    for data, values, earlier in (
        ("sarcos", own_cells | {(0, 2): 3.0}, 1),
        ("sarcos-sim", own_cells, 0),
    ):
        kept = make_earlier(data, {1: 9.0, 2: 3.0})
        cell = find_cells(study, earlier=kept)[IGP, "1000"]
        assert (cell.values, cell.earlier, cell.data) == (values, earlier, "sarcos")


def test_earlier_scores_complete_an_interrupted_run(study):
    record(study, "c", 1000, state="interrupted", replicates=2, finished={"0": {"nlpp": 1.2}})
    kept = make_earlier("sarcos", {1: 1.4})
    for earlier, why in ((make_earlier("sarcos", {}), "1 of 2 replicates so far"), (kept, "")):
        assert find_cells(study, earlier=earlier)[IGP, "1000"].reason == why


def test_distances_to_the_gold_row_are_by_replicate(study):
    table = STUDY.tables[0].model_dump() | {"metric": "distance", "published": None}
    near = redefine(study, gold=IRF, tables=[table], figures=[])
    for experiment, shift in (("a", 3.0), ("c", 1.0), ("d", 0.0)):
        folder = record(near, experiment, 100, [0.0] * 3)
        (folder / "predictions").mkdir()
        for replicate in range(2 if experiment == "d" else 3):
            # other rows: no distance
            labels = (5.0, 6.0) if (experiment, replicate) == ("c", 1) else (1.0, 2.0)
            lines = [f"{i},t,{y},{shift * (1 + replicate)},2.0" for i, y in enumerate(labels)]
            text = "\n".join(["row,task,label,mean,sd", *lines])
            (folder / "predictions" / f"{replicate}.csv").write_text(text)
    record(near, "b", 100, [0.0])  # its predictions were not kept
    cells = find_cells(near)
    assert {row: cells[row, "100"].values for row in (PUBLISHED, IGP, IRF)} == {
        PUBLISHED: {(0, 0): 1.5, (0, 1): 3.0},
        IGP: {(0, 0): 0.5},
        IRF: {(0, 0): 0.0, (0, 1): 0.0},
    }
    assert "keep_predictions=true" in cells[TUNED, "100"].reason


@pytest.mark.parametrize(("at_once", "rates"), [(False, [250.0, 100.0]), (True, [500.0, 200.0])])
def test_ess_per_second_uses_the_time_of_a_replicate(study, at_once, rates):
    """100 steps of 2 ms; if both replicates share a step, each is assigned half of it."""
    lines = [
        line(t, "train", r, 0.002 * t) for r in range(1 if at_once else 2) for t in range(1, 101)
    ]
    result = {"ess": [50.0, 20.0]}
    folder = record(study, "c", 1000, [0.0, 0.0], lines, vectorised=at_once, result=result)
    actual = read_scores(read(folder), folder, "ess_per_second")
    np.testing.assert_allclose([actual[0, r] for r in range(2)], rates)


def test_damaged_record_is_named_and_others_are_shown(study, monkeypatch):
    theirs = record(study, "a", 1000, 0.20 + NOISE)
    empty = record(study, "b", 1000, -0.20 + NOISE, state="running")
    (empty / "run.json").write_text((empty / "run.json").read_text().replace('"running"', '"done"'))
    record(study, "c", 1000, 1.60 + NOISE)
    opened = Path.open

    def refuse_path(path, *args, **keys):
        if path.is_relative_to(theirs):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *args, **keys)

    monkeypatch.setattr(Path, "open", refuse_path)
    with (
        pytest.warns(RunnerWarning, match=rf"skipped: .*{theirs.name}: cannot be read"),
        pytest.warns(RunnerWarning, match=rf"skipped: .*{empty.name}: run.json is damaged"),
    ):
        cells = find_cells(study)
    assert [str(cells[row, "1000"].verdict) for row in (PUBLISHED, TUNED)] == ["not run"] * 2
    assert cells[IGP, "1000"].values
