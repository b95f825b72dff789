"""``runner new``: the written component belongs to its role, its YAML has all keys, its test passes
and its command works."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from support.runs.user_folder import run_command, run_python

from components import registry
from runner.catalogue.new import COMMANDS, create, main
from runner.catalogue.plugins import import_plugins
from runner.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]
CODE = [role for role in COMMANDS if role not in ("experiment", "study")]


@pytest.mark.parametrize("role", CODE)
def test_class_and_yaml_match(role, tmp_path, monkeypatch):
    name = f"new_{role}_of_a_test"
    module, conf, test = create(role, name, tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    # other tests list all registered components
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    import_plugins([name])
    cls = registry.get(role, name)
    assert cls.__name__ == "".join(part.capitalize() for part in name.split("_"))
    keys = yaml.safe_load(conf.read_text())
    assert set(keys) == cls.yaml_keys()
    cls(**{key: value for key, value in keys.items() if key not in cls.threat_keys})
    assert all("#" in line for line in conf.read_text().splitlines()[1:]), "every key has a comment"
    compile(test.read_text(), str(test), "exec")
    assert module.read_text().count("Source:") == 1


def test_experiments_and_studies_are_yaml_and_a_test(tmp_path):
    assert [p.relative_to(tmp_path).as_posix() for p in create("experiment", "mine", tmp_path)] == [
        "conf/experiment/mine.yaml",
        "test_mine.py",
    ]
    study, _ = create("study", "ours", tmp_path)
    assert yaml.safe_load(study.read_text())["name"] == "ours"


def test_existing_files_are_not_overwritten(tmp_path):
    (tmp_path / "mine.py").write_text("precious")
    with pytest.raises(ConfigError, match=r"mine.py: exists already; choose another name"):
        create("model", "mine", tmp_path)
    assert (tmp_path / "mine.py").read_text() == "precious"
    assert not (tmp_path / "conf").exists()


@pytest.mark.slow
@pytest.mark.parametrize("role", COMMANDS)
def test_generated_test_and_printed_command_run(role, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"my_{role}"
    assert main(["new", role, name]) == 0
    printed = capsys.readouterr().out
    tested = run_python(
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_{name}.py"], tmp_path
    )
    assert tested.returncode == 0, tested.stdout
    assert "1 passed" in tested.stdout
    (command,) = (
        line.split("PYTHONPATH=. ", 1)[1]
        for line in printed.splitlines()
        if line.startswith("run it")
    )
    words = shlex.split(command.split(" && ")[0])[1:]
    run_command(words, tmp_path)
