"""A report on runs of one replicate tests them label by label."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from test_report import STUDY, record, study  # noqa: F401

from runner.record.outcomes import write_outcomes
from runner.report import report

RIGHT = np.arange(40) < 30
WORSE = RIGHT & ~(np.arange(40) < 8)


def test_rows_of_one_replicate_are_tested_by_label(study):  # noqa: F811
    write_outcomes(record(study, "a", 1000, [0.3]), 0, {"nlpp": WORSE})
    write_outcomes(record(study, "b", 1000, [0.1]), 0, {"nlpp": RIGHT})
    record(study, "c", 1000, [0.1])
    written, _ = report.write("small", STUDY, study, study.output_dir / "out")
    for page in written[:2]:
        text = page.read_text(encoding="utf-8")
        assert text.count("McNemar p 0.0078 (right in one alone: 0 against 8)") == 1
    (numbers,) = (path for path in written if path.suffix == ".csv" and "p McNemar" in path.read_text().splitlines()[0])
    with numbers.open(newline="") as file:
        p = {row["row"]: row["p McNemar"] for row in csv.DictReader(file) if row["column"] == "1000"}
    assert float(p["sMDGP, as published"]) == pytest.approx(2 / 2**8)
    assert (p["sMDGP, tuned"], p["iGP, tuned"]) == ("", "")
