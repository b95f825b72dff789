"""A rerun with other seeds, compared with kept scores: cells in SE of their difference."""

from dataclasses import replace

import pytest
from support.runs.small_study import NOISE, STUDY, record

from runner.report import report
from scripts import rerun
from scripts.prose import scores as kept_scores


@pytest.fixture
def relaunched_study(study, tmp_path, monkeypatch):
    """Kept scores of two rows, and the study launched again in another folder."""
    record(study, "a", 1000, 0.20 + NOISE)
    record(study, "b", 1000, -0.20 + NOISE)
    report.write("small", STUDY, study, tmp_path / "kept")
    monkeypatch.setattr(kept_scores, "load_study", lambda name: STUDY)
    kept_scores.load_scores.cache_clear()
    again = replace(study, output_dir=tmp_path / "again")
    monkeypatch.setattr(rerun.snapshots, "load", lambda name, folder: again)
    monkeypatch.setattr(rerun, "FOLDER", tmp_path / "kept")
    return again


def test_rerun_cells_are_classified_by_distance(relaunched_study, tmp_path, capsys):
    record(relaunched_study, "a", 1000, 0.21 + NOISE, seed=9)
    record(relaunched_study, "b", 1000, 0.00 + NOISE, seed=9)
    far, near = rerun.pair_cells("small", relaunched_study.output_dir, tmp_path / "kept")
    se = NOISE.std(ddof=1) / 6**0.5
    assert far.row == "sMDGP, tuned"
    assert far.apart == pytest.approx(0.20 / (se * 2**0.5))
    assert near.apart == pytest.approx(0.01 / (se * 2**0.5))
    assert rerun.main(["small", str(relaunched_study.output_dir)]) == 1
    assert "small: 1 of 2 cells within 2 SE" in capsys.readouterr().out
