"""Files of a report on artificial records: self-contained pages, and tables of numbers."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from support.runs.small_study import NOISE, RHAT, record, write_pages

from runner import CONF
from runner.errors import ConfigError
from runner.record.outcomes import write_outcomes
from runner.report.command import main
from runner.report.results import layout_table
from runner.statistics.published import Published, load_published
from runner.study.definition import load_study

RIGHT = np.arange(40) < 30
WORSE = RIGHT & ~(np.arange(40) < 8)


def test_report_writes_its_files(study, tmp_path, capsys):
    record(study, "a", 1000, 0.20 + NOISE)
    record(study, "b", 100, 1.10 + NOISE)
    record(study, "b", 1000, -0.20 + NOISE)
    record(study, "c", 1000, 1.60 + NOISE)
    assert main(["report", "small", "--output-dir", str(tmp_path)]) == 0
    folder = tmp_path / "small" / "report"
    assert {p.name for p in folder.iterdir()} == {
        "small.html",
        "small.md",
        "small.csv",
        "small_replicates.csv",
        "small_origin.json",
        "curve.png",
    }
    assert "study small: 4 not run, 2 agrees, 1 better, 1 worse" in capsys.readouterr().out

    html = (folder / "small.html").read_text()
    # the page loads no external resources
    assert not re.search(r"""(src|href|url\()\s*=?\s*["']?(https?:)?//""", html)
    for text in (
        "default-src 'none'",
        "data:image/png;base64,",
        "Two &lt;sizes&gt; &amp; three models.",
        "<b>-0.20(0.01)</b>",
        "1.28(0.07)",  # as printed
    ):
        assert text in html

    markdown = (folder / "small.md").read_text()
    assert "| iGP | tuned | 1000 | 1.28(0.07) | 1.6000(0.0097) | 6 | +4.5 | worse |" in markdown
    assert "![NLPP against training points N, mean ± SE; data: sarcos](curve.png)" in markdown
    assert "\n\n\n" not in markdown

    rows = list(csv.DictReader((folder / "small.csv").open()))
    assert len(rows) == 4 * 2
    worse = next(r for r in rows if r["model"] == "igp" and r["column"] == "1000")
    assert float(worse["mean"]) == pytest.approx(1.6)
    expected = {
        "row": "iGP, tuned",
        "verdict": "worse",
        "published": "1.28(0.07)",
        "runs": "c/c1000",
    }
    assert expected.items() <= worse.items()
    assert len(list(csv.DictReader((folder / "small_replicates.csv").open()))) == 24


def test_numbers_of_runs_with_failed_checks_are_marked(study):
    record(study, "a", 1000, 0.20 + NOISE, checks={"0": [RHAT]})
    record(study, "b", 1000, -0.20 + NOISE, checks={"0": [RHAT | {"passed": True}]})
    for text in write_pages(study):
        # the verdict stays
        for words in ("0.20(0.01)†", "agrees", "1 of 8 runs failed checks", "R̂ is below 1.01 (1)"):
            assert words in text
        assert "-0.20(0.01)†" not in text


def test_too_short_runs_have_a_separate_mark(study):
    short = RHAT | {"short": True}
    weights = RHAT | {"check": "no particle carries half of the weight"}
    record(study, "a", 1000, 0.20 + NOISE, checks={"0": [short], "1": [short]})
    record(study, "b", 1000, 0.40 + NOISE, checks={"0": [short, weights]})
    record(study, "c", 1000, 0.60 + NOISE, checks={"0": [short], "1": [RHAT]})
    for text in write_pages(study):
        for words in ("0.20(0.01)¶", "0.40(0.01)†", "0.60(0.01)†"):
            assert words in text
        assert "¶ 1 of 8 runs were too short" in text
        assert "† 2 of 8 runs failed checks" in text


def test_rows_of_one_replicate_are_tested_by_label(study):
    write_outcomes(record(study, "a", 1000, [0.3]), 0, {"nlpp": WORSE})
    write_outcomes(record(study, "b", 1000, [0.1]), 0, {"nlpp": RIGHT})
    record(study, "c", 1000, [0.1])
    for text in write_pages(study):
        assert text.count("McNemar p 0.0078 (correct in only one: 0 against 8)") == 1
    with (study.output_dir / "out" / "small.csv").open(newline="") as file:
        p = {
            row["row"]: row["p McNemar"] for row in csv.DictReader(file) if row["column"] == "1000"
        }
    assert float(p["sMDGP, as published"]) == pytest.approx(2 / 2**8)
    assert (p["sMDGP, tuned"], p["iGP, tuned"]) == ("", "")


def test_equal_differences_have_no_spread(study):
    record(study, "a", 1000, np.arange(6.0))
    record(study, "b", 1000, np.arange(6.0) - 2)
    for text in write_pages(study):
        assert "no spread, p 0.031" in text
        assert "inf SE" not in text


def test_only_overrides_that_change_numbers_are_shown(study):
    for text in write_pages(replace(study, extra=["replicates=6", "output_dir=/a/place"])):
        assert "replicates=6" in text
        assert "/a/place" not in text


def test_report_works_before_any_run_and_in_another_folder(tmp_path):
    where = ["--output-dir", str(tmp_path)]
    assert main(["report", "sarcos_table", *where, "--to", str(tmp_path / "docs")]) == 0
    text = (tmp_path / "docs" / "sarcos_table.md").read_text()
    assert "This study has no runs yet" in text
    assert "not run<br><sub>0.15(0.1)</sub>" in text
    with pytest.raises(ConfigError, match="did you mean sarcos_table"):
        main(["report", "sarcos_tabel", *where])


def test_single_run_has_published_numbers():
    config = {
        "model": {"name": "mmdgp"},
        "inference": {"name": "dsvi"},
        "dataset": {"name": "sarcos", "n_train": 100},
    }
    by_size = load_published("boustati_table_3_1")
    assert by_size.numbers_for_run(config) == {"nlpp": "1.34(0.21)"}
    assert load_published("boustati_table_3_2").numbers_for_run(config) == {
        "auc/run 1": "0.75(0.03)",
        "auc/run 2": "0.81(0.02)",
        "auc/run 3": "0.8(0.02)",
        "auc": "0.78(0.02)",
    }
    keys = {"rows": "inference", "columns": "dataset", "values": {"dsvi": {"sarcos": "1.5(0.1)"}}}
    swapped = Published(**by_size.model_dump(exclude={"values"}) | keys)
    assert swapped.numbers_for_run(config) == {"nlpp": "1.5(0.1)"}
    assert swapped.numbers_for_run(config | {"inference": {"name": "map"}}) == {}


@pytest.mark.parametrize("path", sorted((CONF / "study").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_study_is_readable_with_published_numbers(path):
    study = load_study(path.stem)
    assert study.name == path.stem
    columns: dict[tuple[str, str], set[str]] = defaultdict(set)
    partial = {}  # printed rows with fewer columns than our table
    for laid in layout_table(study, None):
        published = laid.published
        assert (published is None) == (laid.spec.published is None)
        assert laid.columns
        for row, cells in laid.rows:
            if published is None or row.published_label not in published.values:
                continue
            key = (published.name, row.published_label)
            columns[key] |= {cell.column for cell in cells if cell.number is not None}
            if any(cell.number is None for cell in cells):
                partial[key] = published.values[row.published_label].keys()
    # if the paper prints only some columns, all of them are found, in one table or several
    assert {key: columns[key] for key in partial} == partial
