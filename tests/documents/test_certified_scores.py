"""Certified accuracies in the kept scores are at most the accuracies under attack, for each
replicate."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from scripts.prose.scores import FOLDER, list_scores

CARDS = [path for name, path in list_scores(FOLDER).items() if name.endswith("_card")]


def find_broken(path: Path) -> list[str]:
    """Cells with a certified accuracy above the accuracy under attack, or with a wrong gap."""
    scores: dict[str, dict[tuple[object, ...], float]] = {}
    for line in pd.read_csv(path).itertuples():
        key = (line.row, line.column, line.seed, line.replicate)
        scores.setdefault(line.table, {})[key] = line.score
    broken = []
    for table in [name for name in scores if name.startswith("certified")]:
        attacked = scores[table.replace("certified", "attacked")]
        gaps = scores[table.replace("certified", "gap")]
        for key, certified in scores[table].items():
            if certified > attacked[key] or abs(attacked[key] - certified - gaps[key]) > 1e-9:
                broken.append(f"{table}: {key}")
    return broken


@pytest.mark.parametrize("path", CARDS, ids=lambda path: path.stem)
def test_certified_scores_do_not_exceed_adaptive_ones(path):
    assert find_broken(path) == []


def test_certificate_above_its_attack_is_detected(tmp_path):
    path = tmp_path / "x_card_replicates.csv"
    rows = [("attacked", 0.5), ("certified", 0.6), ("gap", -0.1)]
    lines = [f"{table},none,0.1,digits,0,0,{score}" for table, score in rows]
    header = "table,row,column,data,seed,replicate,score"
    path.write_text("\n".join([header, *lines]), encoding="utf-8")
    assert find_broken(path) == ["certified: ('none', 0.1, 0, 0)"]
    assert CARDS
