"""The page of study keys shows the models of a study."""

import yaml

from runner.study.definition import StudyDefinition
from scripts.study_keys_page import page, parts


def test_every_key_has_type_default_and_meaning():
    rows = [line.split(" | ") for line in page().splitlines() if line.startswith("| `")]
    models = [StudyDefinition, *(model for _, model, _ in parts())]
    assert [row[0].strip("| `") for row in rows] == [k for m in models for k in m.model_fields]
    for row in rows:
        assert all(cell.strip() for cell in row[1:4]), row[0]


def test_first_study_of_page_is_valid():
    text = page().split("```yaml\n")[1].split("```")[0]
    assert StudyDefinition(**yaml.safe_load(text)).reference == "SGLD"
