"""The signature of a run: every key that can change a number, at any depth."""

import pytest

from runner.compose.settings import UNSIGNED_KEYS, sign

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
def test_a_key_that_can_change_a_number_is_signed(changes):
    assert sign(CONFIG | changes, "d") != sign(CONFIG, "d") != sign(CONFIG, "e")


def test_paths_and_logging_are_not_signed():
    assert sign(CONFIG | dict.fromkeys(UNSIGNED_KEYS, "other"), "d") == sign(CONFIG, "d")
