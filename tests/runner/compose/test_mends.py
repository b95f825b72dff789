"""Suggestions of errors work: the user's command with any suggested name is valid."""

import re
import time
from pathlib import Path

import pytest
import yaml

from runner.errors import ConfigError

LIST = re.compile(r"compatible (?:models|inference methods|attackers|values of [a-z.]+): ([^;]*)")
OFFERS = yaml.safe_load(Path(__file__).with_name("offers.yaml").read_text("utf-8"))


def refusal(make_job, overrides):
    with pytest.raises(ConfigError) as error:
        make_job(*overrides)
    assert "\n" not in str(error.value)
    return str(error.value)


def follow_suggestion(overrides, key, name):
    """Command with another name in a key, and without the user's keys below it."""
    kept = [word for word in overrides if not re.match(rf"~?{re.escape(key)}([.=]|$)", word)]
    name, _, setting = name.partition(" (")
    return [*kept, f"{key}={name}", *([f"{key}.{setting.rstrip(')')}"] if setting else [])]


@pytest.mark.parametrize("offer", OFFERS["names"], ids=lambda offer: offer["command"])
def test_suggested_names_are_accepted(make_job, offer):
    overrides = offer["command"].split()
    key = offer["key"]
    message = refusal(make_job, overrides)
    names = LIST.search(message)[1].split(", ")
    assert set(offer["some"]) <= set(names), message
    refused = next(
        (word.partition("=")[2] for word in overrides if word.startswith(f"{key}=")), None
    )
    assert refused not in names
    for name in names[:: 1 + len(names) // 4]:
        make_job(*follow_suggestion(overrides, key, name))


@pytest.mark.parametrize("command", OFFERS["experiments"])
def test_experiments_are_suggested_if_no_single_name_helps(make_job, command):
    message = refusal(make_job, command.split())
    experiments = re.split(r"experiments with dataset=\w+: ", message)[1].split(", ")
    assert experiments != [""], message
    for experiment in experiments[:2]:
        make_job(experiment)


def test_irreplaceable_attacker_is_to_be_omitted(make_job):
    message = refusal(make_job, ["+experiment=sarcos_mann2_as_published", "attacker=fgsm"])
    assert message.endswith("; remove the attacker (fgsm) with ~attacker")


def test_setting_is_suggested_only_if_the_rest_accepts_it(make_job):
    ridge = ["+experiment=posterior_concentration", "model=linear_regression"]
    assert "set model.noise=1.0" in refusal(make_job, ridge)
    make_job(*ridge, "model.noise=1.0")
    attacked = refusal(
        make_job, [*ridge, "attacker=fgsm"]
    )  # real labels, which no attacker supports
    assert "set model.noise" not in attacked


def test_sampler_that_keeps_no_draw_is_not_suggested(make_job):
    message = refusal(make_job, ["dataset=digits", "model=mlp", "inference=kalman", "steps=300"])
    names = LIST.search(message)[1].split(", ")
    assert "map" in names
    assert "hmc" not in names  # warms up for 500 steps


def test_sampler_that_keeps_draws_is_suggested(make_job):
    command = ["dataset=digits", "model=mlp", "inference=kalman", "steps=600"]
    assert "hmc" in LIST.search(refusal(make_job, command))[1].split(", ")


def test_refusal_takes_no_longer_than_its_imports(make_job):
    command = ("+experiment=digits_fgsm", "dataset=lgssm")
    refusal(make_job, command)  # everything is imported
    began = time.process_time()
    refusal(make_job, command)
    assert time.process_time() - began < 1.5
