"""``runner show study/<name>``: the file below a few facts."""

import pytest
import yaml

from runner import CONF
from runner.catalogue.show import main

STUDIES = sorted((CONF / "study").glob("*.yaml"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_show_prints_a_complete_study(path, capsys):
    assert main(["show", f"study/{path.stem}"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"# study {path.stem}\n# run   runner study {path.stem}\n")
    assert "runner/study/definition.py" in text
    assert yaml.safe_load(text) == yaml.safe_load(path.read_text(encoding="utf-8"))
