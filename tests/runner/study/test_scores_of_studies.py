"""A study with unknown scores or keys in tables or figures is refused before the first run."""

import pytest

from runner.errors import ConfigError
from runner.study.study import main

WHOLE = """name: own
description: a mixture of Gaussians
rows: [{label: SGLD, model: target_density, preset: '', experiment: mog, overrides: [steps=600]}]
tables: [{name: t, title: t, columns: {E: error_mean, rate: ess_per_second, late: late/error_mean}}]
"""
CHANGES = {
    "a score of other problems": (
        "E: error_mean",
        "E: accuracy",
        "t: no run has the score accuracy; there are: acceptance, ",
    ),
    "a misspelt score": (
        "E: error_mean",
        "E: eror_mean",
        "table t: no run has the score eror_mean, did you mean error_mean?",
    ),
    "an evolution": (
        "tables:",
        "evolutions: [{name: e, title: e, metrics: [kll]}]\ntables:",
        "e: no run has the score kll, ",
    ),
    "a curve": (
        "tables:",
        "figures: [{name: f, x: t, metrics: [acuracy]}]\ntables:",
        "figure f: no run has the score acuracy",
    ),
    "a key of a table": (
        "name: t,",
        "nam: t,",
        "own.yaml: tables.0.nam: unknown key, did you mean name?",
    ),
    "a key of a row": (
        "overrides:",
        "overides:",
        "own.yaml: rows.0.overides: unknown key, did you mean overrides?",
    ),
    "a key of the whole": (
        "tables:",
        "evolutons: []\ntables:",
        "own.yaml: evolutons: unknown key, did you mean evolutions?",
    ),
    "no row": (
        "rows: [{label: SGLD, model: target_density, preset: '', experiment: mog, overrides: [steps=600]}]",
        "rows: []",
        "own.yaml: rows: empty; give at least one",
    ),
    "a list in plugins": (
        "overrides: [steps=600]",
        "overrides: ['plugins=[[a]]']",
        "plugins: ['a'] is not a module name",
    ),
}


def launch(text, folder, *words):
    (folder / "conf" / "study").mkdir(parents=True)
    (folder / "conf" / "study" / "own.yaml").write_text(text, encoding="utf-8")
    return main(
        [
            "study",
            "own",
            "--config-dir",
            str(folder / "conf"),
            "--output-dir",
            str(folder / "outputs"),
            *words,
        ]
    )


@pytest.mark.parametrize("kind", CHANGES)
def test_study_is_refused_before_its_first_run(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("RUNNER_CONFIG_DIR", "")  # the command's setting is undone after the test
    old, new, message = CHANGES[kind]
    assert old in WHOLE
    with pytest.raises(ConfigError) as error:
        launch(WHOLE.replace(old, new, 1), tmp_path)
    assert message in str(error.value)
    assert not list(tmp_path.glob("outputs/mog/*"))


def test_unchanged_study_is_launched(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RUNNER_CONFIG_DIR", "")
    assert launch(WHOLE, tmp_path, "--status") == 0
    assert "not started" in capsys.readouterr().out
