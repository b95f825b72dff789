"""Components set by an experiment or a default can be removed in any notation, as if never set."""

from __future__ import annotations

import pytest

from runner.compose.compose import compose
from runner.compose.job import build
from runner.compose.resolve import ResolvedConfig, resolve

DIGITS = "+experiment=digits_fgsm"
CO2 = "+experiment=structural_co2"


def resolve_words(*words: str) -> ResolvedConfig:
    return resolve(compose(list(words)))


@pytest.mark.parametrize("smoke", ["smoke=false", "smoke=true"])
@pytest.mark.parametrize("word", ["~attacker", "attacker=null", "attacker=none", "~attacker=fgsm"])
def test_attacker_of_an_experiment_can_be_omitted(word, smoke):
    config = resolve_words(DIGITS, word, smoke)
    assert config.choice["attacker"] is None
    assert "attacker" not in config.config
    assert build(config).signature == build(resolve_words(DIGITS, "~attacker", smoke)).signature


def test_default_component_can_be_omitted():
    words = ["dataset=digits", "model=mlp", "inference=map"]
    assert {
        build(resolve_words(*words, *more)).signature
        for more in ([], ["~attacker"], ["attacker=null"])
    } == {build(resolve_words(*words)).signature}


@pytest.mark.parametrize(
    "word", ["~inference.training_attacker", "inference.training_attacker=null"]
)
def test_part_of_another_component_can_be_omitted(word):
    config = resolve_words(
        DIGITS, "inference=adversarial_training", "inference.training_attacker=pgd", word
    )
    assert config.config["inference"]["training_attacker"] is None


def test_blocks_of_a_model_are_omitted_by_number():
    names = ["local_linear_trend", "seasonal", "autoregressive"]
    blocks = f"model.blocks=[{','.join(names)}]"
    remaining = [
        block["name"]
        for block in resolve_words(CO2, blocks, "~model.blocks.0", "~model.blocks.1").config[
            "model"
        ]["blocks"]
    ]
    assert remaining == names[2:]
