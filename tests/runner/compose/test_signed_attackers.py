"""Keys of attackers that came later leave the names of earlier runs as they were."""

from runner.compose.settings import sign


def config(**attacker):
    return {"attacker": {"name": "worst_case", "members": [{"name": "pgd", **attacker}]}, "seed": 0}


def test_full_precision_is_signed_as_before_the_key():
    assert sign(config(precision="full"), "digits") == sign(config(), "digits")
    assert sign(config(precision="bfloat16"), "digits") != sign(config(), "digits")
    assert sign(config(norm="l2"), "digits") != sign(config(), "digits")
