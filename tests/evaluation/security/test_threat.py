"""Norm and sizes belong to the run: they are set next to an attacker's keys and checked there, but
are not part of the attacker."""

import pytest
from support.runs.configured import component

from components.evaluation.security.threat import Threat, build_threat
from runner.compose.compose import compose
from runner.compose.job import prepare
from runner.errors import ConfigError

DIGITS = ["+experiment=digits_fgsm", "smoke=true"]
SPAM = ["+experiment=spam_attacked", "smoke=true"]


def job(*overrides):
    return prepare(compose([*overrides, "tracking=false", "offline=true"]))


def test_attacker_keys_define_the_threat():
    made = job(*DIGITS, "attacker=pgd", "attacker.eps=[0,0.5,1]", "attacker.norm=l2")
    assert made.threat == Threat("l2", (0.0, 0.5, 1.0))
    assert made.config["attacker"]["eps"] == [0, 0.5, 1]
    assert "eps" not in type(made.attacker).model_fields
    assert job(*DIGITS, "attacker=cw").threat.norm == "l2"
    assert job(*DIGITS, "attacker=transfer", "attacker.attack=deepfool").threat.norm == "linf"
    assert job(*SPAM, "attacker=word_flip").threat == Threat("flip", (0.0, 1.0, 2.0))
    assert (
        job(
            *SPAM, "attacker=worst_case", "attacker.members=[dalvi]", "attacker.eps=[0,1]"
        ).threat.norm
        == "insertion"
    )
    assert (
        job("+experiment=wiener_velocity", "smoke=true", "attacker=gaussian_contamination").threat
        is None
    )
    assert job("+experiment=mog", "smoke=true").threat is None


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["attacker.eps=[0.2,0.1]"], r"attacker.eps: .* increasing sizes"),
        (["attacker.eps=[0.1,0.1]"], r"attacker.eps: .* increasing sizes"),
        (["attacker.eps=[]"], r"attacker.eps: .* increasing sizes"),
        (["attacker.eps=[-0.1]"], "attacker.eps.0=-0.1: .*≥ 0"),
        (["attacker.eps=0.1"], "attacker.eps=0.1: must be a list"),
        (["+attacker.esp=[0.1]"], "attacker.esp: unknown key, .* eps"),
        (
            ["attacker.eps=[0.2,0.1]", "attacker.criterion=none"],
            r"attacker.eps: .* increasing sizes",
        ),
        (
            ["attacker=worst_case", "attacker.members=[fgsm,{name: pgd, eps: [0.3]}]"],
            "attacker.members: pgd .*; set attacker.eps for all members",
        ),
        (
            ["attacker=worst_case", "attacker.members=[fgsm,{name: pgd, eps: [0.3,0.2]}]"],
            "attacker.members.1.eps: .* increasing sizes",
        ),
        (
            ["attacker=worst_case", "attacker.members=[fgsm,cw]"],
            "attacker.members: cw .*; use norm=l2 for all, or remove cw",
        ),
        (
            [
                "inference=adversarial_training",
                "inference.training_attacker={name: pgd, eps: [0.3,0.2]}",
            ],
            "inference.training_attacker.eps: .* increasing sizes",
        ),
        (
            ["attacker=worst_case", "attacker.members=[gaussian_contamination]"],
            "attacker.members.0=gaussian_contamination .*dataset=digits .*; "
            "compatible values of attacker.members.0: ",
        ),
    ],
)
def test_invalid_threats_name_the_key(overrides, message):
    with pytest.raises(ConfigError, match=f"^{message}"):
        job(*DIGITS, *overrides)


def test_word_sizes_are_integers():
    with pytest.raises(ConfigError, match=r"^attacker.eps: .* words, e\.g\. \[0, 1, 2\]"):
        job(*SPAM, "attacker=word_insertion", "attacker.eps=[0,0.5]")


def test_worst_case_has_norm_of_its_members():
    words = component(
        "attacker", "worst_case", members=[component("attacker", "ara", direction="flip")]
    )
    assert build_threat(words, [0, 2]).norm == "flip"
    assert words.inputs() == "binary"
    assert words.knowledge_used() == "grey box"
