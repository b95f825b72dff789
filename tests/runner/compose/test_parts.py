"""Nested components are completed from their YAML, recorded, and unchanged when read back."""

import subprocess
import sys

import pytest
from omegaconf import OmegaConf

from runner.catalogue.class_description import nested_roles
from runner.compose.compose import Composed, compose
from runner.compose.expand import all_parts
from runner.compose.job import prepare
from runner.execution.storage.artefacts import references

WORST = ["+experiment=digits_fgsm", "attacker=worst_case", "tracking=false"]


def job(*overrides):
    return prepare(compose([*WORST, *overrides]))


def test_names_become_full_mappings_with_inherited_keys():
    made = job(
        "attacker.members=[fgsm,{name: pgd, steps: 7},transfer]",
        "attacker.eps=[0.0,0.2]",
        "attacker.norm=linf",
    )
    fgsm, pgd, transfer = made.config["attacker"]["members"]
    assert fgsm["criterion"] == "cross_entropy"
    assert pgd["steps"] == 7
    assert pgd["step_size"] == 0.0625  # the value in its own YAML
    assert fgsm["eps"] == pgd["eps"] == transfer["eps"] == transfer["attack"]["eps"] == [0.0, 0.2]
    assert transfer["surrogate"]["name"] == "mlp"
    assert made.attacker.members[1].steps == 7
    assert [path for path, _, _ in all_parts("attacker", made.config["attacker"])] == [
        "attacker",
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


def test_record_is_read_back_as_the_same_run():
    made = job("attacker.members=[pgd,transfer]")
    again = prepare(Composed(OmegaConf.create(made.config), made.settings.experiment))
    assert again.config == made.config
    assert again.signature == made.signature
    assert again.attacker == made.attacker
    assert job("attacker.members=[pgd,{name: transfer, share: 0.1}]").signature != made.signature


def test_integers_can_be_written_as_1e3():
    plain = job("steps=2000", "attacker.members=[{name: pgd, steps: 10}]")
    short = job("steps=2e3", "attacker.members=[{name: pgd, steps: 1e1}]")
    assert short.config == plain.config
    assert short.signature == plain.signature


def test_references_include_all_parts():
    text = references(job("attacker.members=[pgd]"))
    assert "madry" in text


def test_defence_can_have_its_own_attacker():
    made = prepare(
        compose(
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
    assert nested_roles(type(made.inference)) == {"training_attacker": "attacker"}


@pytest.mark.parametrize(
    "overrides",
    [
        ["inference.training_attacker=pgd", "inference.training_attacker.steps=7"],
        ["inference.training_attacker.steps=7", "inference.training_attacker=pgd"],
        ["inference.training_attacker={name: pgd, steps: 7}"],
        [
            "inference.training_attacker={name: pgd, steps: 3}",
            "inference.training_attacker.steps=7",
        ],
    ],
)
def test_keys_of_a_part_chosen_on_the_command_line(overrides):
    base = ["+experiment=digits_fgsm", "inference=adversarial_training", "tracking=false"]
    plain = prepare(compose([*base, "inference.training_attacker=pgd"])).inference.training_attacker
    made = prepare(compose([*base, *overrides])).inference.training_attacker
    assert made == plain.model_copy(update={"steps": 7})


def test_keys_of_nested_and_listed_parts():
    made = job(
        "attacker.members.0.criterion=margin",
        "attacker.members=[fgsm,{name: pgd},transfer]",
        "attacker.members.1.steps=7",
        "attacker.members.2.attack=fgsm",
        "attacker.members.2.attack.criterion=margin",
    )
    fgsm, pgd, transfer = made.attacker.members
    assert (fgsm.criterion, pgd.steps) == ("margin", 7)
    assert (transfer.attack.name, transfer.attack.criterion) == ("fgsm", "margin")
    full = made.config["attacker"]
    # inherited as usual
    assert full["members"][2]["attack"]["eps"] == full["members"][0]["eps"] == full["eps"]


def test_keys_of_a_part_chosen_by_its_component():
    made = prepare(
        compose(
            [
                "+experiment=digits_fgsm",
                "attacker=transfer",
                "attacker.attack.steps=7",
                "tracking=false",
            ]
        )
    )
    assert (made.attacker.attack.name, made.attacker.attack.steps) == ("pgd", 7)
    assert made.config["attacker"]["attack"]["eps"] == made.config["attacker"]["eps"]


@pytest.mark.slow  # 13 s
def test_sweep_covers_parts_and_their_keys(tmp_path):
    """Jobs of a sweep are composed individually by Hydra's launcher."""
    command = [
        sys.executable,
        "-m",
        "runner.commands.cli",
        "-m",
        "+experiment=digits_fgsm",
        "smoke=true",
        "attacker=transfer",
        "attacker.attack=pgd,bim",
        "attacker.attack.steps=2,3",
        "tracking=false",
        "dataset.n_train=60",
        "dataset.n_test=10",
        "steps=2",
        f"output_dir={tmp_path}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    attacks = [OmegaConf.load(path).attacker.attack for path in tmp_path.glob("*/*/config.yaml")]
    assert {(a.name, a.steps) for a in attacks} == {("pgd", 2), ("pgd", 3), ("bim", 2), ("bim", 3)}
