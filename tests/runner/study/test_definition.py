"""Definition of a study: the plan of its runs, and errors in one line."""

import pytest
import yaml
from support.runs.made_studies import STEP_SIZES as DEFINITION

from runner.errors import ConfigError
from runner.study.definition import StudyDefinition, load_study
from runner.study.plan import plan


def test_plan_is_every_combination_column_by_column():
    runs = list(plan(StudyDefinition.model_validate(DEFINITION), ["data_dir=d"]))
    assert [r.name for r in runs] == [
        "SGLD, small steps=60 seed=0",
        "SGLD, large steps=60",
        "SGLD, small steps=60 seed=1",
        "SGLD, small steps=80 seed=0",
        "SGLD, small steps=80 seed=1",
    ]
    assert runs[0].overrides == [
        "+experiment=mog",
        "smoke=true",
        "tracking=false",
        "offline=true",
        "inference.step_size=0.01",
        "steps=60",
        "seed=0",
        "data_dir=d",
    ]


def test_row_can_override_cells_and_omit_the_experiment():
    row = {"label": "SGLD", "model": "sgld", "preset": "", "overrides": ["model=m"]}
    cells = {"cells": {"steps": {80: ["seed=9"]}}}
    change = {"rows": [row | cells], "grid": {"steps": [60, 80]}, "overrides": []}
    runs = list(plan(StudyDefinition.model_validate(DEFINITION | change), []))
    assert [run.overrides for run in runs] == [
        ["model=m", "steps=60"],
        ["model=m", "steps=80", "seed=9"],
    ]


ROW = DEFINITION["rows"][0]
TABLE = DEFINITION["tables"][0]
CURVE = {"name": "f", "x": "steps", "metrics": ["error_mean"]}
SPREAD = {"name": "f", "title": "t", "metrics": ["error_mean"]}
RANKS = {"name": "f", "title": "t", "table": "mean"}
COST = {"kind": "cost", "metric": "rmse"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"descripton": "typed wrongly"}, "descripton: unknown key, did you mean description?"),
        ({"experiment": "mog"}, "experiment: unknown key here, but one of rows"),
        ({"rows": [{"label": "a"}]}, "rows.0.model, rows.0.preset: missing; give it a value"),
        (
            {"reference": "SGLD, smal"},
            "reference: SGLD, smal is not a row, did you mean SGLD, small?",
        ),
        ({"gold": "SGLD, smal"}, "gold: SGLD, smal is not a row, did you mean SGLD, small?"),
        ({"rows": [ROW] * 2}, "rows: SGLD, small occurs twice"),
        ({"rows": []}, "rows: empty; give at least one entry"),
        (
            {"rows": [ROW | {"cells": {"steps": {7: []}}}]},
            "row SGLD, small: cells has steps=7, which is not in its grid",
        ),
        (
            {"grid": {"inference.lr": [1]}},
            "table mean: grid key inference.lr is neither its columns nor seed",
        ),
        (
            {"splits": {}},
            "splits: splits: set test_share, or test_rows if columns are numbers of training rows",
        ),
        (
            {"tables": [TABLE | {"metric": None}]},
            "tables.0: table mean: columns must be a grid key, with metric, or a mapping to metrics",
        ),
        (
            {"tables": [TABLE | {"better": "higher"}]},
            "tables.0: table mean: better: higher conflicts with error_mean, for which lower is better; remove it",
        ),
        (
            {"tables": [TABLE | {"rows": ["SGLD, smal"]}]},
            "table mean: SGLD, smal is not a row, did you mean SGLD, small?",
        ),
        (
            {"tables": [TABLE | {"over": "SGLD, smal"}]},
            "table mean: SGLD, smal is not a row, did you mean SGLD, small?",
        ),
        (
            {"tables": [TABLE | {"metric": "distance"}]},
            "table mean: distances require a reference row; set gold",
        ),
        (
            {"spreads": [SPREAD | {"metrics": ["error_men"]}]},
            "figure f: error_men is in no table, did you mean error_mean?",
        ),
        (
            {"spreads": [SPREAD | {"levels": {"q": 1.0}}]},
            "figure f: q is in no table; there are: error_mean",
        ),
        ({"ranks": [RANKS | {"table": "men"}]}, "figure f: men is not a table, did you mean mean?"),
        (
            {"ranks": [RANKS | {"blocks": "replicates", "column": "9"}]},
            "figure f: 9 is not a column of mean; there are: 60, 80",
        ),
        (
            {"ranks": [RANKS | {"column": "60"}]},
            "ranks.0: figure f: column and blocks: replicates require each other",
        ),
        (
            {"ranks": [RANKS], "tables": [TABLE | {"metric": "entropy", "better": None}]},
            "figure f: entropy has no direction (higher or lower is better); rank another score",
        ),
        (
            {"figures": [CURVE | {"rows": ["SGLD, smal"]}]},
            "figure f: SGLD, smal is not a row, did you mean SGLD, small?",
        ),
        (
            {"figures": [CURVE | {"x": "mean", "floor": "u"}]},
            "figure f: u is not a table, as required for x and floor; there are: mean",
        ),
        (
            {"figures": [CURVE | {"against": "mae"}]},
            "figure f: against=mae requires a table by steps; there are: error_mean",
        ),
        (
            {"figures": [COST | {"cell": {"steps": 5}}]},
            "figure cost_rmse_seconds: cell has steps=5, which is not in the grid",
        ),
        ({"figures": [COST | {"cel": {}}]}, "figures.0.cost.cel: unknown key, did you mean cell?"),
        (
            {"evolutions": [SPREAD | {"cell": {"steps": 5}}]},
            "figure f: cell has steps=5, which is not in the grid",
        ),
        (
            {"evolutions": [SPREAD | {"less": "SGLD, smal"}]},
            "figure f: less is not a row, did you mean SGLD, small?",
        ),
        (
            {"evolutions": [SPREAD | {"less": "SGLD, small", "against": "seconds"}]},
            "evolutions.0: figure f: less compares steps; remove against: seconds",
        ),
    ],
)
def test_invalid_definitions_are_refused(tmp_path, change, message):
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(DEFINITION | change))
    with pytest.raises(ConfigError) as error:
        load_study(str(tmp_path / "bad.yaml"))
    assert str(error.value) == f"bad.yaml: {message}"


def test_unknown_study_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean sarcos_table"):
        load_study("sarcos_tabel")
