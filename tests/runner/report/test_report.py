"""Reports on records made by hand: verdicts, bold type, empty cells, and files that stand on their
own."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from runner import CONF
from runner.errors import ConfigError, RunnerWarning
from runner.record.facts import read
from runner.record.outcomes import write_outcomes
from runner.report import report
from runner.report.earlier_scores import EarlierCell
from runner.report.figures.curves import curves
from runner.report.figures.evolutions import evolutions, training_seconds
from runner.report.figures.spreads import spreads
from runner.report.report import main
from runner.report.results import layout_table, scores, step_times
from runner.statistics.published import Published, load_published
from runner.study import snapshot
from runner.study.definition import StudyDefinition, load_study
from runner.study.snapshot import FrozenRun, Snapshot

SIZES = [100, 1000]
STUDY = StudyDefinition.model_validate(
    {
        "name": "small",
        "description": "Two <sizes> & three models.",
        "replicates": 6,
        "grid": {"dataset.n_train": SIZES},
        "rows": [
            {"label": "sMDGP", "model": "smdgp", "preset": "as published", "experiment": "a"},
            {"label": "sMDGP", "model": "smdgp", "preset": "tuned", "experiment": "b"},
            {"label": "iGP", "model": "igp", "preset": "tuned", "experiment": "c"},
            {"label": "iRF", "model": "irf", "preset": "", "experiment": "d"},
        ],
        "reference": "sMDGP, tuned",
        "tables": [
            {"name": "nlpp", "title": "NLPP", "columns": "dataset.n_train", "metric": "nlpp", "better": "lower",
             "published": "boustati_table_3_1"},
        ],
        "figures": [{"name": "curve", "x": "dataset.n_train", "metrics": ["nlpp"]}],
    }
)  # fmt: skip
NOISE = np.array([-0.03, 0.02, 0.01, -0.02, 0.03, -0.01])

RIGHT = np.arange(40) < 30
WORSE = RIGHT & ~(np.arange(40) < 8)


@pytest.fixture
def study(tmp_path):
    """A frozen study of eight runs, none of them started."""
    runs = [
        FrozenRun(
            f"{row.name} n_train={n}",
            row.name,
            {"dataset.n_train": n},
            [],
            row.experiment,
            f"{row.experiment}{n}",
            "sarcos",
        )
        for row in STUDY.rows
        for n in SIZES
    ]
    frozen = Snapshot("small", STUDY, "2026-01-01", "0123456789abcdef", [], runs, tmp_path)
    snapshot.save(frozen)
    return frozen


def finished_of(result, vectorised):
    """What ``finished`` of a done run's run.json holds: by replicate, or of all at once."""
    if vectorised:
        return {"0": result}
    count = max(map(len, result.values()))
    return {str(r): {name: values[r] for name, values in result.items()} for r in range(count)}


def record(study, experiment, n, nlpp=None, **changes):
    """Writes run.json of one run, as the loop would."""
    values = [float(v) for v in (nlpp if nlpp is not None else [])]
    facts = {
        "state": "done", "experiment": experiment, "signature": f"{experiment}{n}", "data": "sarcos", "choice": {},
        "seed": 0, "replicates": len(values), "smoke": False, "vectorised": False, "started": "", "ended": "",
        "seconds": 3600.0, "finished": {}, "result": {"nlpp": values}, "error": None, "threads": 1,
        "git": {"sha": "f" * 40, "diff": ""}, "versions": {"python": "3.11.7", "torch": "2.13.0"},
        "hardware": {"cpu": "a processor"},
    }  # fmt: skip
    facts |= changes
    if facts["state"] == "done" and not facts["finished"]:
        facts["finished"] = finished_of(facts["result"], facts["vectorised"])
    folder = study.output_dir / experiment / f"{experiment}{n}"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(facts))
    return folder


def cells(study, table=0):
    laid = layout_table(study.study, study)[table]
    return {(row.name, cell.column): cell for row, line in laid.rows for cell in line}


def test_agrees_better_worse_not_run_not_published(study):
    record(study, "a", 1000, 0.20 + NOISE)  # published 0.15(0.1)
    record(study, "b", 1000, -0.20 + NOISE)
    record(study, "c", 1000, 1.60 + NOISE)  # published 1.28(0.07)
    record(study, "d", 1000, 0.50 + NOISE)
    found = cells(study)
    se = NOISE.std(ddof=1) / np.sqrt(6)
    assert found["sMDGP, as published", "1000"].verdict.word == "agrees"
    assert found["sMDGP, as published", "1000"].verdict.in_se == pytest.approx(
        0.05 / np.hypot(0.1, se)
    )
    assert found["sMDGP, tuned", "1000"].verdict.word == "better"
    assert found["iGP, tuned", "1000"].verdict.word == "worse"
    assert found["iRF", "1000"].verdict.word == "not published"
    assert str(found["iGP, tuned", "100"].verdict) == "not run"


def test_rows_that_are_parts_of_one_run_read_their_own_scores(study):
    parts = [
        row.model_copy(update={"part": part})
        for row, part in zip(STUDY.rows[:2], ("0.5", "1"), strict=True)
    ]
    for row in ("a", "b"):
        record(
            study,
            row,
            1000,
            result={"nlpp/0.5": [0.2] * 6, "nlpp/1": [0.4] * 6, "nlpp": [9.0] * 6},
            replicates=6,
        )
    tables = [
        STUDY.tables[0].model_copy(update={"over": over}) for over in (None, "sMDGP, as published")
    ]
    whole = STUDY.model_copy(update={"rows": [*parts, *STUDY.rows[2:]], "tables": tables})
    asked = replace(study, study=whole)
    found, ratios = cells(asked), cells(asked, table=1)
    assert [
        found[f"sMDGP, {of}", "1000"].summary.mean for of in ("as published", "tuned")
    ] == pytest.approx([0.2, 0.4])
    assert ratios["sMDGP, tuned", "1000"].summary.mean == pytest.approx(2.0)


def test_numbers_of_runs_that_failed_checks_are_marked(study):
    rhat = {"about": "run", "check": "R̂ is below 1.01", "passed": False, "detail": "1.2"}
    record(study, "a", 1000, 0.20 + NOISE, checks={"0": [rhat]})
    record(study, "b", 1000, -0.20 + NOISE, checks={"0": [rhat | {"passed": True}]})
    found = cells(study)
    assert found["sMDGP, as published", "1000"].doubted
    assert found["sMDGP, as published", "1000"].verdict.word == "agrees"  # the verdict stays
    assert not found["sMDGP, tuned", "1000"].doubted
    written, _ = report.write("small", STUDY, study, study.output_dir / "out")
    for page in written[:2]:
        text = page.read_text(encoding="utf-8")
        assert re.search(r"0\.20\(0\.01\)†", text)
        assert "-0.20(0.01)†" not in text
        assert "1 of 8 runs failed checks" in text
        assert "R̂ is below 1.01 (1)" in text


def test_a_diverged_run_keeps_what_is_finite_of_its_result(study):
    values = [*(0.20 + NOISE), float("nan")]
    record(
        study,
        "a",
        1000,
        values,
        state="diverged",
        error="scores are not finite: nlpp nan in 1 of 7 replicates",
    )
    cell = cells(study)["sMDGP, as published", "1000"]
    assert (cell.summary.n, cell.summary.lost) == (6, 1)
    assert cell.verdict.why == "1 of 7 replicates not finite, left out"


def test_other_data_are_never_compared(study):
    record(study, "a", 1000, 0.15 + NOISE, data="sarcos-test-file")
    record(study, "b", 1000, 0.15 + NOISE, data="sarcos-sim")
    found = cells(study)
    verdict = found["sMDGP, as published", "1000"].verdict
    assert str(verdict) == "not comparable (other data: sarcos-test-file)"
    assert verdict.in_se is None, "no difference in SE"
    assert str(found["sMDGP, tuned", "1000"].verdict) == "not comparable (other data: sarcos-sim)"
    assert not any(c.bold for c in found.values())  # two kinds of data: none is best


def test_reasons_of_cells_without_a_verdict(study):
    record(study, "a", 100, state="failed", error="step 3: Cholesky failed")
    record(study, "a", 1000, 0.15 + NOISE, smoke=True)
    record(study, "b", 100, [1.0], state="interrupted", error="interrupted at step 7", replicates=6,
           finished={"0": {"nlpp": 1.2}, "1": {"nlpp": 1.3}})  # fmt: skip
    record(study, "b", 1000, [0.1], replicates=1)
    record(study, "c", 100, [1.0, 1.1, float("nan"), 1.2, 1.0, 1.1])
    found = cells(study)
    assert (
        str(found["sMDGP, as published", "100"].verdict)
        == "not run (failed: step 3: Cholesky failed)"
    )
    assert str(found["sMDGP, as published", "1000"].verdict) == "not comparable (a smoke run)"
    assert str(found["sMDGP, tuned", "100"].verdict) == "not comparable (2 of 6 replicates so far)"
    assert found["sMDGP, tuned", "100"].summary.mean == pytest.approx(1.25)
    assert (
        str(found["sMDGP, tuned", "1000"].verdict)
        == "not comparable (one replicate has no standard error)"
    )
    assert found["iGP, tuned", "100"].verdict.why == "1 of 6 replicates not finite, left out"


def test_a_published_table_that_can_never_be_compared_says_so(study):
    folder = record(study, "a", 1000, 0.1 + NOISE)
    lines = []
    for replicate in range(2):
        for step in (1, 10, 20, 30, 40):
            # an evaluation between 20 and 30
            seconds = 5.0 + 0.004 * step + (100 if step >= 30 else 0)
            lines.append(
                {
                    "step": step,
                    "replicate": replicate,
                    "time": seconds,
                    "phase": "train",
                    "metrics": {},
                }
            )
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert step_times(folder) == {0: pytest.approx(4.0), 1: pytest.approx(4.0)}
    table = {
        "name": "cost", "title": "Time", "columns": {"milliseconds": "milliseconds_per_step"}, "better": "lower",
        "published": "boustati_table_a_3",
    }  # fmt: skip
    definition = study.study.model_dump() | {"grid": {}, "tables": [table], "figures": []}
    timed = FrozenRun("x", "sMDGP, as published", {}, [], "a", "a1000", "sarcos")
    again = replace(study, study=StudyDefinition.model_validate(definition), runs=[timed])
    cell = cells(again)["sMDGP, as published", "milliseconds"]
    assert cell.summary.mean == pytest.approx(4.0)
    assert str(cell.verdict) == "not comparable (timed on another machine)"


def test_bold_and_paired_differences(study):
    noise = np.concatenate([NOISE, NOISE[:2]])
    apart = np.array([1, -1, 2, -2, 0.5, -0.4, 0.3, -0.2]) * 1e-3
    record(study, "a", 1000, 0.30 + noise)
    record(study, "b", 1000, 0.10 + noise)
    record(study, "c", 1000, 0.10 + noise + apart)
    found = cells(study)
    assert [
        found[name, "1000"].bold for name in ("sMDGP, as published", "sMDGP, tuned", "iGP, tuned")
    ] == [
        False,
        True,
        True,
    ]
    definition = study.study.model_dump()
    definition["tables"] = [table | {"bold": False} for table in definition["tables"]]
    no_rivals = replace(study, study=StudyDefinition.model_validate(definition))
    assert not any(cell.bold for cell in cells(no_rivals).values())
    against = found["sMDGP, as published", "1000"].against
    assert against.difference == pytest.approx(0.2)
    assert against.p == pytest.approx(2 / 2**8)
    assert found["sMDGP, tuned", "1000"].against is None


def test_rows_of_one_replicate_are_tested_by_label(study):
    write_outcomes(record(study, "a", 1000, [0.3]), 0, {"nlpp": WORSE})
    write_outcomes(record(study, "b", 1000, [0.1]), 0, {"nlpp": RIGHT})
    record(study, "c", 1000, [0.1])
    written, _ = report.write("small", STUDY, study, study.output_dir / "out")
    for page in written[:2]:
        text = page.read_text(encoding="utf-8")
        assert text.count("McNemar p 0.0078 (right in one alone: 0 against 8)") == 1
    (numbers,) = (
        path
        for path in written
        if path.suffix == ".csv" and "p McNemar" in path.read_text().splitlines()[0]
    )
    with numbers.open(newline="") as file:
        p = {
            row["row"]: row["p McNemar"] for row in csv.DictReader(file) if row["column"] == "1000"
        }
    assert float(p["sMDGP, as published"]) == pytest.approx(2 / 2**8)
    assert (p["sMDGP, tuned"], p["iGP, tuned"]) == ("", "")


def test_a_table_of_ratios_divides_replicate_by_replicate(study):
    base = 1.0 + np.arange(6)
    record(study, "b", 100, base)
    record(study, "a", 100, 0.9 * base)
    record(study, "c", 100, (0.5 * base)[:4])
    table = study.study.tables[0].model_copy(
        update={"over": "sMDGP, tuned", "published": None, "rows": [r.name for r in STUDY.rows[:3]]}
    )
    ratios = replace(study, study=study.study.model_copy(update={"tables": [table]}))
    found = cells(ratios)
    assert list(found["sMDGP, as published", "100"].values.values()) == pytest.approx([0.9] * 6)
    assert list(found["iGP, tuned", "100"].values.values()) == pytest.approx([0.5] * 4)
    assert list(found["sMDGP, tuned", "100"].values.values()) == [1.0] * 6
    assert not found["iGP, tuned", "1000"].values
    assert ("iRF", "100") not in found
    with pytest.raises(
        ValueError, match="table nlpp: sMDGP, tunes is not a row, did you mean sMDGP, tuned"
    ):
        StudyDefinition.model_validate(
            {**STUDY.model_dump(), "tables": [{**table.model_dump(), "over": "sMDGP, tunes"}]}
        )


def write_pages(study) -> list[str]:
    """The two pages of a report."""
    written, _ = report.write("small", STUDY, study, study.output_dir / "out")
    return [page.read_text(encoding="utf-8") for page in written[:2]]


def test_differences_that_are_all_the_same_have_no_spread_to_be_told_in(study):
    record(study, "a", 1000, np.arange(6.0))
    record(study, "b", 1000, np.arange(6.0) - 2)
    for text in write_pages(study):
        assert "no spread, p 0.031" in text
        assert "inf SE" not in text


def test_a_report_says_what_can_change_a_number_of_how_it_was_launched(study):
    launched = replace(study, extra=["replicates=6", "output_dir=/a/place", "tracking=false"])
    for text in write_pages(launched):
        assert "replicates=6" in text
        assert "/a/place" not in text


def test_rows_that_are_not_models_name_the_printed_row(study):
    record(study, "c", 1000, 0.15 + NOISE)  # model igp, laid beside the row smdgp: 0.15(0.1)
    rows = [
        row.model_copy(update={"published_row": "smdgp"} if row.model == "igp" else {})
        for row in STUDY.rows
    ]
    again = replace(study, study=STUDY.model_copy(update={"rows": rows}))
    cell = cells(again)["iGP, tuned", "1000"]
    assert (cell.number.text, cell.verdict.word) == ("0.15(0.1)", "agrees")
    # the model, where nothing is said
    assert cells(again)["sMDGP, tuned", "1000"].number.text == "0.15(0.1)"


def test_a_published_row_that_is_not_printed(tmp_path):
    rows = [STUDY.rows[0].model_dump() | {"published_row": "smdpg"}]
    definition = STUDY.model_dump() | {"rows": rows, "reference": None}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(definition))
    wanted = "small.yaml: row sMDGP, as published: published_row=smdpg is in no table of this study, did you mean smdgp?"
    with pytest.raises(ConfigError, match=re.escape(wanted)):
        load_study(str(tmp_path / "small.yaml"))


def test_what_is_printed_for_a_single_run():
    of = {
        "model": {"name": "mmdgp"},
        "inference": {"name": "dsvi"},
        "dataset": {"name": "sarcos", "n_train": 100},
    }
    assert load_published("boustati_table_3_1").beside(of) == {"nlpp": "1.34(0.21)"}
    assert load_published("boustati_table_3_2").beside(of) == {
        "auc/run 1": "0.75(0.03)",
        "auc/run 2": "0.81(0.02)",
        "auc/run 3": "0.8(0.02)",
        "auc": "0.78(0.02)",
    }
    swapped = load_published("boustati_table_3_1").model_dump(exclude={"values"}) | {
        "rows": "inference",
        "columns": "dataset",
        "values": {"dsvi": {"sarcos": "1.5(0.1)"}},
    }
    assert Published(**swapped).beside(of) == {"nlpp": "1.5(0.1)"}
    assert Published(**swapped).beside(of | {"inference": {"name": "map"}}) == {}


def test_seeds_are_pooled(tmp_path):
    pooled = STUDY.model_copy(
        update={"grid": {"dataset.n_train": [1000], "seed": [0, 1]}, "tables": STUDY.tables[:1]}
    )
    runs = [
        FrozenRun(
            f"r{s}", "iGP, tuned", {"dataset.n_train": 1000, "seed": s}, [], "c", f"c{s}", "sarcos"
        )
        for s in (0, 1)
    ]
    study = Snapshot("small", pooled, "", "", [], runs, tmp_path)
    record(study, "c", 0, [1.0, 2.0])
    record(study, "c", 1, [3.0, 6.0], seed=1)
    assert cells(study)["iGP, tuned", "1000"].values == {
        (0, 0): 1.0,
        (0, 1): 2.0,
        (1, 0): 3.0,
        (1, 1): 6.0,
    }


def test_a_record_counts_before_an_earlier_score(study):
    record(study, "c", 1000, [1.0, 2.0])
    earlier = {("nlpp", "iGP, tuned", "1000"): EarlierCell("sarcos", {(0, 1): 9.0, (0, 2): 3.0})}
    (laid,) = layout_table(study.study, study, earlier)
    cell = next(
        c
        for row, line in laid.rows
        for c in line
        if row.name == "iGP, tuned" and c.column == "1000"
    )
    assert (cell.values, cell.earlier) == ({(0, 0): 1.0, (0, 1): 2.0, (0, 2): 3.0}, 1)
    earlier["nlpp", "iGP, tuned", "1000"].data = "sarcos-sim"  # other data are not mixed in
    (laid,) = layout_table(study.study, study, earlier)
    cell = next(
        c
        for row, line in laid.rows
        for c in line
        if row.name == "iGP, tuned" and c.column == "1000"
    )
    assert (cell.values, cell.earlier, cell.data) == ({(0, 0): 1.0, (0, 1): 2.0}, 0, "sarcos")


def test_earlier_scores_complete_an_interrupted_run(study):
    record(study, "c", 1000, state="interrupted", replicates=2, finished={"0": {"nlpp": 1.2}})
    for known, why in (({}, "1 of 2 replicates so far"), ({(0, 1): 1.4}, "")):
        earlier = {("nlpp", "iGP, tuned", "1000"): EarlierCell("sarcos", known)} if known else {}
        (laid,) = layout_table(study.study, study, earlier)
        cell = next(
            c
            for row, line in laid.rows
            for c in line
            if row.name == "iGP, tuned" and c.column == "1000"
        )
        assert cell.reason == why


def test_the_files_of_a_report(study, tmp_path, capsys):
    record(study, "a", 1000, 0.20 + NOISE)
    record(study, "b", 100, 1.10 + NOISE)
    record(study, "b", 1000, -0.20 + NOISE)
    record(study, "c", 1000, 1.60 + NOISE, data="sarcos")
    assert main(["report", "small", "--output-dir", str(tmp_path)]) == 0
    folder = tmp_path / "small" / "report"
    assert {p.name for p in folder.iterdir()} == {
        "small.html", "small.md", "small.csv", "small_replicates.csv", "small_origin.json", "curve.png", "table_nlpp.png",
    }  # fmt: skip
    assert "study small: 4 not run, 2 agrees, 1 better, 1 worse" in capsys.readouterr().out

    html = (folder / "small.html").read_text()
    # nothing is fetched from anywhere
    assert not re.search(r"""(src|href|url\()\s*=?\s*["']?(https?:)?//""", html)
    assert "default-src 'none'" in html
    assert "data:image/png;base64," in html
    assert "Two &lt;sizes&gt; &amp; three models." in html
    assert ">-0.20(0.01)</button>" in html, "no bold of six pairs and two tests"
    assert "1.28(0.07)" in html  # as printed

    markdown = (folder / "small.md").read_text()
    assert "| iGP | tuned | 1000 | 1.28(0.07) | 1.6000(0.0097) | 6 | +4.5 | worse |" in markdown
    assert "![NLPP against n_train, mean ± SE; data: sarcos](curve.png)" in markdown
    assert "\n\n\n" not in markdown

    rows = list(csv.DictReader((folder / "small.csv").open()))
    assert len(rows) == 4 * 2
    worse = next(r for r in rows if r["model"] == "igp" and r["column"] == "1000")
    assert float(worse["mean"]) == pytest.approx(1.6)
    assert worse["row"] == "iGP, tuned"
    assert (worse["verdict"], worse["published"], worse["runs"]) == (
        "worse",
        "1.28(0.07)",
        "c/c1000",
    )
    assert len(list(csv.DictReader((folder / "small_replicates.csv").open()))) == 24


def test_a_report_can_be_written_elsewhere_and_before_any_run(tmp_path):
    assert (
        main(
            [
                "report",
                "sarcos_table",
                "--output-dir",
                str(tmp_path),
                "--to",
                str(tmp_path / "docs"),
            ]
        )
        == 0
    )
    text = (tmp_path / "docs" / "sarcos_table.md").read_text()
    assert "Nothing has been run yet" in text
    assert "not run<br><sub>0.15(0.1)</sub>" in text
    with pytest.raises(ConfigError, match="did you mean sarcos_table"):
        main(["report", "sarcos_tabel", "--output-dir", str(tmp_path)])


@pytest.mark.parametrize("path", sorted((CONF / "study").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_study_reads_and_finds_its_published_numbers(path):
    study = load_study(path.stem)
    assert study.name == path.stem
    assert report.TEMPLATES.is_dir()
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    parts = set()  # printed rows of which a table of ours has more columns than are printed
    printed = {}
    for laid in layout_table(study, None):
        assert (laid.published is None) == (laid.spec.published is None)
        assert laid.columns
        for row, line in laid.rows:
            if laid.published is not None and row.published_label in laid.published.values:
                key = (laid.published.name, row.published_label)
                numbers = {cell.column for cell in line if cell.number is not None}
                found[key] |= numbers
                if len(numbers) < len(line):
                    parts.add(key)
                printed[key] = laid.published.values[row.published_label].keys()
    # where the paper prints some columns alone, all of these are found, in one table or several
    for key in parts:
        assert found[key] == printed[key]


def test_times_of_every_replicate_are_in_the_record(make_job):
    from runner.execution.execute import run

    job = make_job("+experiment=digits_fgsm", "smoke=true", "replicates=2", "record_every=1")
    run(job)
    assert set(step_times(job.folder)) == {0, 1}


def test_distances_are_from_the_gold_row_replicate_by_replicate(study):
    table = {
        "name": "far",
        "title": "Distance",
        "columns": "dataset.n_train",
        "metric": "distance",
        "better": "lower",
    }
    definition = study.study.model_dump() | {"gold": "iRF", "tables": [table], "figures": []}
    near = replace(study, study=StudyDefinition.model_validate(definition))
    for experiment, shift in (("a", 3.0), ("c", 1.0), ("d", 0.0)):
        finished = {str(r): {"nlpp": 0.0} for r in range(3)}
        folder = record(near, experiment, 100, [0.0, 0.0, 0.0], finished=finished)
        (folder / "predictions").mkdir()
        for replicate in range(2 if experiment == "d" else 3):
            # other rows: no distance
            labels = (5.0, 6.0) if (experiment, replicate) == ("c", 1) else (1.0, 2.0)
            lines = [f"{i},t,{y},{shift * (1 + replicate)},2.0" for i, y in enumerate(labels)]
            (folder / "predictions" / f"{replicate}.csv").write_text(
                "\n".join(["row,task,label,mean,sd", *lines])
            )
    record(near, "b", 100, [0.0])  # whose predictions nobody kept
    found = cells(near)
    assert found["sMDGP, as published", "100"].values == {(0, 0): 1.5, (0, 1): 3.0}
    assert found["iGP, tuned", "100"].values == {(0, 0): 0.5}
    assert found["iRF", "100"].values == {(0, 0): 0.0, (0, 1): 0.0}
    assert "keep_predictions=true" in found["sMDGP, tuned", "100"].reason
    for wrong in ({"gold": None}, {"gold": "iRFF"}):
        with pytest.raises(ValueError, match="gold"):
            StudyDefinition.model_validate(definition | wrong)


@pytest.mark.parametrize(("at_once", "rates"), [(False, [250.0, 100.0]), (True, [500.0, 200.0])])
def test_ess_per_second_is_of_the_time_that_a_replicate_takes(study, at_once, rates):
    """Steps of 2 ms, 100 of them; where both replicates share a step, each has half of it."""
    folder = record(study, "c", 1000, [0.0, 0.0], vectorised=at_once, result={"ess": [50.0, 20.0]})
    (folder / "metrics.jsonl").write_text("".join(
        json.dumps({"step": t, "replicate": r, "time": 0.002 * t, "phase": "train", "metrics": {}}) + "\n"
        for r in range(1 if at_once else 2)
        for t in range(1, 101)
    ))  # fmt: skip
    found = scores(read(folder), folder, "ess_per_second")
    np.testing.assert_allclose([found[0, r] for r in range(2)], rates)


def test_a_table_whose_columns_are_numbers_is_a_curve(study):
    table = {
        "name": "attacked",
        "title": "Accuracy under attack (higher is better)",
        "better": "higher",
        "columns": {"0": "accuracy", "0.1": "robust"},
    }
    figure = {
        "name": "curve",
        "x": "attacked",
        "label": "size",
        "metrics": ["accuracy"],
        "rows": ["iRF"],
    }
    definition = study.study.model_dump() | {"grid": {}, "tables": [table], "figures": [figure]}
    run = replace(study.runs[-1], cell={})
    small = replace(study, study=StudyDefinition.model_validate(definition), runs=[run])
    record(small, "d", 1000, [0.0, 0.0], result={"accuracy": [0.9, 0.8], "robust": [0.5, 0.4]})
    drawn, caption, _ = curves(small.study, layout_table(small.study, small))["curve"]
    (ax,) = drawn.axes
    assert ax.get_xscale() == "linear"
    np.testing.assert_allclose(ax.containers[0][0].get_xydata(), [[0, 0.85], [0.1, 0.45]])
    assert caption.startswith("Accuracy under attack, mean ± SE")


def test_a_floor_is_dashed_and_shaded_up_to_the_curve(study):
    columns = [{"0.1": "robust", "0.2": "robuster"}, {"0.1": "certain", "0.2": "certainly"}]
    tables = [
        {"name": name, "title": name, "better": "higher", "columns": scores}
        for name, scores in zip(("attacked", "certified"), columns, strict=True)
    ]
    figure = {"name": "card", "x": "attacked", "floor": "certified", "metrics": ["accuracy"]}
    figure |= {"rows": ["iRF"]}
    definition = study.study.model_dump() | {"grid": {}, "tables": tables, "figures": [figure]}
    run = replace(study.runs[-1], cell={})
    small = replace(study, study=StudyDefinition.model_validate(definition), runs=[run])
    values = {"robust": 0.8, "robuster": 0.6, "certain": 0.5, "certainly": 0.1}
    record(small, "d", 1000, [0.0, 0.0], result={k: [v, v] for k, v in values.items()})
    drawn, caption, chart = curves(small.study, layout_table(small.study, small))["card"]
    (ax,) = drawn.axes
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    np.testing.assert_allclose(dashed[0].get_ydata(), [0.5, 0.1])
    assert ax.get_ylim()[0] < 0.1
    assert caption.startswith("attacked; dashed, shaded up to it: certified")
    assert [trace["y"] for trace in chart["data"]] == [[0.8, 0.6], [0.5, 0.1]]
    for wrong in ({"floor": "certifed"}, {"x": "n"}):
        with pytest.raises(ValueError, match="with a floor, x and floor are tables"):
            StudyDefinition.model_validate(definition | {"figures": [figure | wrong]})


def test_a_frontier_is_one_score_against_another(study):
    """A point for each value of the grid, sideways where the other score is, on a linear axis."""
    key = "dataset.n_train"
    tables = [
        {"name": name, "title": name, "better": "higher", "columns": key, "metric": name}
        for name in ("reward", "loss")
    ]
    figure = {"name": "frontier", "x": key, "against": "loss", "metrics": ["reward"]}
    definition = study.study.model_dump() | {"tables": tables, "figures": [figure]}
    small = replace(study, study=StudyDefinition.model_validate(definition))
    for n, reward, loss in ((100, 1.0, 0.5), (1000, 3.0, 0.7)):
        record(small, "d", n, [0.0], result={"reward": [reward], "loss": [loss]})
    drawn, caption, chart = curves(small.study, layout_table(small.study, small))["frontier"]
    (ax,) = drawn.axes
    assert ax.get_xscale() == "linear"
    np.testing.assert_allclose(ax.containers[0][0].get_xydata(), [[0.5, 1], [0.7, 3]])
    assert (chart["data"][0]["x"], chart["data"][0]["y"]) == ([0.5, 0.7], [1.0, 3.0])
    assert caption.startswith("reward against LOSS by n_train, mean ± SE")
    wrong = definition | {"figures": [figure | {"against": "losss"}]}
    with pytest.raises(ValueError, match="against needs a table of losss by"):
        StudyDefinition.model_validate(wrong)


def test_seconds_of_training_leave_evaluations_out():
    lines = [
        {"replicate": r, "phase": phase, "time": (1 + r) * time}
        for r in (0, 1)
        for phase, time in (
            ("train", 1.0),
            ("train", 3.0),
            ("evaluation", 8.0),
            ("train", 9.5),
            ("final", 20.0),
        )
    ]
    assert [seconds for _, seconds in training_seconds(lines[:5])] == [1.0, 3.0, 3.0, 4.5, 4.5]
    assert [seconds for line, seconds in training_seconds(lines) if line["replicate"]] == [
        2.0,
        6.0,
        6.0,
        9.0,
        9.0,
    ]


@pytest.mark.parametrize("at_once", [False, True])
def test_evolutions_are_read_from_the_records_of_one_cell(study, at_once):
    spec = {
        "name": "way",
        "title": "On the way",
        "metrics": ["nlpp"],
        "cell": {"dataset.n_train": 1000},
    }
    definition = StudyDefinition.model_validate(study.study.model_dump() | {"evolutions": [spec]})
    small = replace(study, study=definition)
    record(small, "c", 1000, [0.5, 0.6], vectorised=at_once)
    record(small, "c", 100, [0.9, 0.8], vectorised=at_once)
    for n in (100, 1000):
        lines = (
            [
                {
                    "step": t,
                    "replicate": 0,
                    "time": 1.0,
                    "phase": phase,
                    "metrics": {"nlpp": [n + r + 1 / t for r in range(2)]},
                }
                for t, phase in ((1, "train"), (10, "evaluation"), (20, "final"))
            ]
            if at_once
            else [
                {
                    "step": t,
                    "replicate": r,
                    "time": 1.0,
                    "phase": phase,
                    "metrics": {"nlpp": n + r + 1 / t},
                }
                for r in range(2)
                for t, phase in ((1, "train"), (10, "evaluation"), (20, "final"))
            ]
        )
        run = next(
            run
            for run in small.runs
            if run.row == "iGP, tuned" and run.cell == {"dataset.n_train": n}
        )
        (small.folder(run) / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    drawn, caption, _ = evolutions(definition, small)["way"]
    (ax,) = drawn.axes
    assert caption == "On the way; 2 runs of each"
    np.testing.assert_allclose([line.get_xydata() for line in ax.lines], [
        [[10, 1000 + r + 0.1], [20, 1000 + r + 0.05]] for r in range(2)
    ])  # fmt: skip
    timed = StudyDefinition.model_validate(
        definition.model_dump() | {"evolutions": [spec | {"against": "seconds"}]}
    )
    (ax,) = evolutions(timed, small)["way"][0].axes
    assert ax.get_xlabel() == "seconds of training"
    assert {x for line in ax.lines for x in line.get_xdata()} == {1.0}  # evaluations take none
    wrong = definition.model_dump() | {"evolutions": [spec | {"cell": {"dataset.n_train": 7}}]}
    with pytest.raises(ValueError, match=r"cell has dataset\.n_train=7, which is not in the grid"):
        StudyDefinition.model_validate(wrong)


def test_no_figure_is_drawn_while_the_row_that_is_subtracted_has_no_record(study):
    spec = {"name": "way", "title": "On the way", "metrics": ["nelbo"], "cell": {"dataset.n_train": 1000},
            "less": "sMDGP, tuned"}  # fmt: skip
    definition = StudyDefinition.model_validate(study.study.model_dump() | {"evolutions": [spec]})
    small = replace(study, study=definition)
    folder = record(small, "c", 1000, [0.5])
    line = {"step": 10, "replicate": 0, "time": 1.0, "phase": "evaluation", "metrics": {"nelbo": 1}}
    (folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    assert evolutions(definition, small) == {}


def test_the_way_less_that_of_a_row_and_the_mean_of_its_second_half(study):
    """Differences replicate by replicate, their mean drawn; the last evaluation counts once, early
    ones not at all."""
    spec = {"name": "way", "title": "On the way", "metrics": ["nelbo"], "cell": {"dataset.n_train": 1000},
            "less": "sMDGP, tuned"}  # fmt: skip
    definition = StudyDefinition.model_validate(study.study.model_dump() | {"evolutions": [spec]})
    small = replace(study, study=definition)
    for experiment, shift in (("b", 0.0), ("c", 10.0)):
        folder = record(small, experiment, 1000, [0.5, 0.6])
        (folder / "metrics.jsonl").write_text("".join(
            json.dumps({"step": t, "replicate": r, "time": 1.0, "phase": phase,
                        "metrics": {"nelbo": t * r + shift * (r + 1)}}) + "\n"
            for r in range(2)
            for t, phase in ((1, "train"), (10, "evaluation"), (20, "evaluation"), (30, "evaluation"), (30, "final"))
        ))  # fmt: skip
    drawn, caption, _ = evolutions(definition, small)["way"]
    (line,) = drawn.axes[0].lines
    np.testing.assert_allclose(line.get_xydata(), [[10, 15.0], [20, 15.0], [30, 15.0]])
    assert caption.endswith(
        "2 runs of each, mean of each less sMDGP, tuned, replicate by replicate"
    )
    found = scores(read(folder), folder, "late/nelbo")
    assert found == {(0, 0): pytest.approx(10.0), (0, 1): pytest.approx(25.0 + 20.0)}
    banded = {"shows": "band", "rows": ["iGP"], "label": "episode", "words": {"nelbo": "loss"}}
    definition = StudyDefinition.model_validate(
        study.study.model_dump() | {"evolutions": [spec | banded]}
    )
    drawn, caption, _ = evolutions(definition, small)["way"]
    (ax,) = drawn.axes
    assert caption.endswith(
        "mean and central 90 % of each less sMDGP, tuned, replicate by replicate"
    )
    # settings that all have are named once
    assert caption.startswith("On the way, tuned; 2 runs of each")
    assert [text.get_text() for text in drawn.legends[0].texts] == ["iGP"]
    assert (ax.get_xlabel(), ax.get_ylabel(), len(ax.lines), len(ax.collections)) == (
        "episode",
        "loss",
        1,
        1,
    )
    low, high = (
        ax.collections[0].get_paths()[0].vertices[:, 1].min(),
        ax.collections[0].get_paths()[0].vertices[:, 1].max(),
    )
    np.testing.assert_allclose([low, high], [10.5, 19.5])  # of the differences 10 and 20
    for wrong, told in (
        ({"rows": ["iGPP"]}, "iGPP is not a row"),
        ({"words": {"nlpp": "loss"}}, "words has nlpp"),
    ):
        with pytest.raises(ValueError, match=f"figure way: {told}"):
            StudyDefinition.model_validate(definition.model_dump() | {"evolutions": [spec | wrong]})
    wrong = definition.model_dump() | {"evolutions": [spec | {"less": "nobody"}]}
    with pytest.raises(ValueError, match="figure way: less is not a row"):
        StudyDefinition.model_validate(wrong)


def test_spreads_show_every_replicate_and_mark_the_chosen_beta(study):
    spec = {
        "name": "all",
        "title": "All scores",
        "metrics": ["nlpp"],
        "rows": ["sMDGP, tuned", "iGP"],
        "words": {"nlpp": "NLPP"},
    }
    definition = StudyDefinition.model_validate(study.study.model_dump() | {"spreads": [spec]})
    runs = [
        replace(run, config={"inference": {"name": "f", "beta": 0.1}}) if run.row == "iGP, tuned"
        else replace(run, config={"inference": {"name": "s", "filter": {"name": "f"}}}) if run.row == "iRF" else run
        for run in study.runs
    ]  # fmt: skip
    small = replace(study, study=definition, runs=runs)
    record(small, "b", 100, 0.5 + NOISE)
    record(small, "b", 1000, [*(0.3 + NOISE), float("nan")])
    record(small, "c", 1000, 0.7 + NOISE)
    record(small, "d", 1000, [1.0] * 3, result={"nlpp": [1.0] * 3, "beta_selected": [0.1] * 3})
    drawn, caption, _ = spreads(definition, small, layout_table(definition, small))["all"]
    assert caption == "All scores; 6 or 7 runs of each; data: sarcos; left out as not finite: 1"
    (ax,) = drawn.axes
    assert ax.get_ylabel() == "NLPP"
    assert ax.get_xlabel() == "n_train"
    # iGP at 1000
    assert [list(line.get_xdata()) for line in ax.lines if line.get_linestyle() == "--"] == [
        [4.5, 4.5]
    ]
    assert spreads(study.study, small, []) == {}
    for wrong, told in (
        ({"metrics": ["nlp"]}, "nlp is in no table"),
        ({"rows": ["iGPP"]}, "iGPP is not a row"),
    ):
        with pytest.raises(ValueError, match=f"figure all: {told}"):
            StudyDefinition.model_validate(definition.model_dump() | {"spreads": [spec | wrong]})


def test_a_record_that_cannot_be_read_or_believed_is_named_and_the_others_are_laid_out(
    study, monkeypatch
):
    theirs = record(study, "a", 1000, 0.20 + NOISE)
    empty = record(study, "b", 1000, -0.20 + NOISE, state="running")
    (empty / "run.json").write_text((empty / "run.json").read_text().replace('"running"', '"done"'))
    record(study, "c", 1000, 1.60 + NOISE)
    opened = Path.open

    def refused(path, *args, **keys):
        if path.is_relative_to(theirs):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *args, **keys)

    monkeypatch.setattr(Path, "open", refused)
    with (
        pytest.warns(RunnerWarning, match=rf"left out: .*{theirs.name}: cannot be read"),
        pytest.warns(RunnerWarning, match=rf"left out: .*{empty.name}: its run.json is damaged"),
    ):
        found = cells(study)
    assert str(found["sMDGP, as published", "1000"].verdict) == "not run"
    assert str(found["sMDGP, tuned", "1000"].verdict) == "not run"
    assert found["iGP, tuned", "1000"].values
