"""Components set by an experiment or a default can be removed in any notation, as if never set."""

from __future__ import annotations

import pytest

from runner.compose.compose import compose
from runner.compose.job import build
from runner.compose.validate import ResolvedConfig, resolve

DIGITS = "+experiment=digits_fgsm"
CO2 = "+experiment=structural_co2"


def resolved(*words: str) -> ResolvedConfig:
    return resolve(compose(list(words)))


@pytest.mark.parametrize("smoke", ["smoke=false", "smoke=true"])
@pytest.mark.parametrize("word", ["~attacker", "attacker=null", "attacker=none", "~attacker=fgsm"])
def test_the_attacker_of_an_experiment(word, smoke):
    config = resolved(DIGITS, word, smoke)
    assert config.choice["attacker"] is None
    assert "attacker" not in config.config
    assert build(config).signature == build(resolved(DIGITS, "~attacker", smoke)).signature


def test_one_that_nobody_chose_may_be_left_out_too():
    words = ["dataset=digits", "model=mlp", "inference=map"]
    assert {
        build(resolved(*words, *more)).signature for more in ([], ["~attacker"], ["attacker=null"])
    } == {build(resolved(*words)).signature}


@pytest.mark.parametrize(
    "word", ["~inference.training_attacker", "inference.training_attacker=null"]
)
def test_a_part_of_another_component(word):
    config = resolved(
        DIGITS, "inference=adversarial_training", "inference.training_attacker=pgd", word
    )
    assert config.config["inference"]["training_attacker"] is None


def test_blocks_of_a_model_by_their_number():
    names = ["local_linear_trend", "seasonal", "autoregressive"]
    blocks = f"model.blocks=[{','.join(names)}]"
    remaining = [
        block["name"]
        for block in resolved(CO2, blocks, "~model.blocks.0", "~model.blocks.1").config["model"][
            "blocks"
        ]
    ]
    assert remaining == names[2:]
