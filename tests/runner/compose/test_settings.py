"""Run-level keys: the signature includes every key that can change a result; folders are paths."""

import pytest

from runner.catalogue.settings import UNSIGNED_KEYS, sign, validate_folder

CONFIG = {
    "seed": 0,
    "validation": None,
    "budget": {"gradients": None},
    "attacker": {"name": "worst_case", "members": [{"name": "pgd", "precision": "full"}]},
}


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"validation": 0.25},
        {"budget": {"gradients": 5}},
        {"attacker": {"name": "worst_case", "members": [{"name": "pgd", "precision": "bfloat16"}]}},
    ],
)
def test_key_that_changes_numbers_is_signed(changes):
    assert sign(CONFIG | changes, "d") != sign(CONFIG, "d") != sign(CONFIG, "e")


def test_paths_and_logging_are_not_signed():
    assert sign(CONFIG | dict.fromkeys(UNSIGNED_KEYS, "other"), "d") == sign(CONFIG, "d")


def test_tilde_is_the_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert validate_folder("~/runs") == "/home/somebody/runs"
    assert validate_folder("runs/~") == "runs/~"


@pytest.mark.parametrize("path", ["", "  ", "a\0b"])
def test_impossible_path_is_refused(path):
    with pytest.raises(ValueError, match="is not a folder; give a path"):
        validate_folder(path)
