"""Components inside components: taken in full from their YAML, recorded so, and the same when read back."""

from __future__ import annotations

from omegaconf import OmegaConf

from runner.compose.config import compose, prepare
from runner.compose.parts import held_roles, inside
from runner.run.artefacts import references

WORST = ["+experiment=digits_fgsm", "attacker=worst_case", "tracking=false"]


def job(*overrides):
    return prepare(*compose([*WORST, *overrides]))


def test_names_become_full_mappings_with_what_the_whole_shares():
    made = job("attacker.members=[fgsm,{name: pgd, steps: 7},transfer]", "attacker.eps=[0.0,0.2]", "attacker.norm=linf")
    fgsm, pgd, transfer = made.config["attacker"]["members"]
    assert fgsm["criterion"] == "cross_entropy"
    assert pgd["steps"] == 7
    assert pgd["step_size"] == 0.0625  # that of its own YAML
    assert fgsm["eps"] == pgd["eps"] == transfer["eps"] == transfer["attack"]["eps"] == [0.0, 0.2]
    assert transfer["surrogate"]["name"] == "mlp"
    assert made.attacker.members[1].steps == 7
    assert [path for path, _, _ in inside(made.attacker, "attacker")] == [
        "attacker.members.0",
        "attacker.members.1",
        "attacker.members.2",
        "attacker.members.2.attack",
        "attacker.members.2.surrogate",
        "attacker.members.2.inference",
    ]


def test_norm_reaches_members_that_have_one():
    made = job("attacker.members=[pgd,cw]", "attacker.norm=l2")
    assert [m.measure() for m in made.attacker.members] == ["l2", "l2"]


def test_a_record_is_read_back_as_the_same_run():
    made = job("attacker.members=[pgd,transfer]")
    again = prepare(OmegaConf.create(made.config), made.settings.experiment)
    assert again.config == made.config
    assert again.signature == made.signature
    assert again.attacker == made.attacker
    assert job("attacker.members=[pgd,{name: transfer, share: 0.1}]").signature != made.signature


def test_references_of_all_parts():
    text = references(job("attacker.members=[pgd]"))
    assert "madry" in text


def test_a_defence_may_have_an_attacker_of_its_own():
    made = prepare(
        *compose(
            [
                "+experiment=digits_fgsm",
                "inference=adversarial_training",
                "inference.training_attacker={name: pgd, steps: 3}",
                "tracking=false",
            ]
        )
    )
    assert made.attacker.name == "fgsm"
    assert made.inference.training_attacker.steps == 3
    assert held_roles(type(made.inference)) == {"training_attacker": "attacker"}
