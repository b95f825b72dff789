"""Errors in the tables and figures of a study's definition."""

import re

import pytest
import yaml
from support.runs.small_study import STUDY

from runner.errors import ConfigError
from runner.study.definition import StudyDefinition, load_study

NAMES = {"name": "way", "title": "t"}
MISTAKES = [
    (
        {"gold": None, "tables": [{**NAMES, "columns": {"a": "distance"}}]},
        "require a reference row; set gold",
    ),
    ({"gold": "iRFF"}, "gold: iRFF is not a row"),
    (
        {"tables": [STUDY.tables[0].model_dump() | {"over": "sMDGP, tunes"}]},
        "table nlpp: sMDGP, tunes is not a row, did you mean sMDGP, tuned",
    ),
    (
        {"figures": [{"name": "f", "x": "nlpp", "floor": "certifed", "metrics": ["nlpp"]}]},
        "certifed is not a table, as required for x and floor",
    ),
    (
        {"figures": [{"name": "f", "x": "n", "floor": "nlpp", "metrics": ["nlpp"]}]},
        "n is not a table, as required for x and floor",
    ),
    (
        {
            "figures": [
                {"name": "f", "x": "dataset.n_train", "against": "losss", "metrics": ["nlpp"]}
            ]
        },
        "against=losss requires a table by",
    ),
    ({"figures": [{"kind": "coast"}]}, "'curve', 'cost'"),
    (
        {"evolutions": [NAMES | {"metrics": ["nlpp"], "cell": {"dataset.n_train": 7}}]},
        r"cell has dataset\.n_train=7, which is not in the grid",
    ),
    (
        {"evolutions": [NAMES | {"metrics": ["nlpp"], "rows": ["iGPP"]}]},
        "figure way: iGPP is not a row",
    ),
    (
        {"evolutions": [NAMES | {"metrics": ["nelbo"], "words": {"nlpp": "loss"}}]},
        "figure way: words has nlpp",
    ),
    (
        {"evolutions": [NAMES | {"metrics": ["nelbo"], "less": "nobody"}]},
        "figure way: less is not a row",
    ),
    ({"spreads": [NAMES | {"metrics": ["nlp"]}]}, "figure way: nlp is in no table"),
    (
        {"spreads": [NAMES | {"metrics": ["nlpp"], "rows": ["iGPP"]}]},
        "figure way: iGPP is not a row",
    ),
    (
        {"ranks": [NAMES | {"table": "nlp", "blocks": "all"}]},
        "nlp is not a table, did you mean nlpp",
    ),
    (
        {"ranks": [NAMES | {"table": "nlpp", "blocks": "replicates", "column": "10"}]},
        "10 is not a column",
    ),
    (
        {"ranks": [NAMES | {"table": "nlpp", "blocks": "replicates"}]},
        "column and blocks: replicates require each other",
    ),
]


@pytest.mark.parametrize(("changes", "message"), MISTAKES)
def test_invalid_studies_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        StudyDefinition.model_validate(STUDY.model_dump() | changes)


def test_missing_published_row_is_named(tmp_path):
    rows = [STUDY.rows[0].model_dump() | {"published_row": "smdpg"}]
    definition = STUDY.model_dump() | {"rows": rows, "reference": None}
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(definition))
    message = "small.yaml: row sMDGP, as published: published_row=smdpg is in no table of this study, did you mean smdgp?"
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_study(str(tmp_path / "small.yaml"))
