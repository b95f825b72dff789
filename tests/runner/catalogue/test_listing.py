"""``runner list``: complete, fast, and consistent with the YAML and the classes."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console
from support.runs.configured import COMPONENTS

from components import registry
from runner import CONF
from runner.catalogue import listing
from runner.catalogue.declarations import catalogue
from runner.catalogue.families import families
from runner.catalogue.list_and_show import (
    GROUPS,
    options,
)
from runner.catalogue.listing import main
from runner.disk.read_yaml import load_untrusted


def _within(group: str, text: str) -> set[str]:
    by_family = families(group).items()
    return {name for family, names in by_family if family.split("/")[0] == text for name in names}


@pytest.fixture
def list_lines(capsys):
    """Function that runs ``list`` and returns the printed lines."""

    def list_by(*words):
        assert main(["list", *words]) == 0
        return capsys.readouterr().out.splitlines()

    return list_by


def test_list_names_everything(list_lines):
    lines = [line.split("\t") for line in list_lines("--all")]
    assert {(line[0], line[1]) for line in lines} >= {*COMPONENTS, ("experiment", "friend_or_foe")}
    assert all(len(line) == 4 for line in lines)


def test_list_starts_with_families_and_counts(list_lines):
    lines = [line.split("\t") for line in list_lines()]
    members = {(group, family): names.split(", ") for group, family, _, names in lines}
    assert all(int(count) == len(names.split(", ")) for _, _, count, names in lines)
    assert members["inference", "mcmc"] == sorted(members["inference", "mcmc"])
    assert {"mala", "gibbs"} & set(members["inference", "mcmc"])
    for group in GROUPS:
        listed = [name for (role, _), names in members.items() if role == group for name in names]
        assert sorted(listed) == options(group), group


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (120, 40), (200, 50)])
def test_families_fit_on_a_screen_and_name_the_next_command(width, height):
    by_family = {group: families(group) for group in GROUPS}
    console = Console(width=width, file=io.StringIO())
    console.print(listing.draw_overview(by_family))
    text = console.file.getvalue()
    assert len(text.splitlines()) < height  # one line is for the prompt
    assert all(f" {len(options(group))}  " in text for group in GROUPS)
    assert "runner list inference/sgmcmc" in text
    assert " sgmcmc 11, " in text


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("study/gallego/4", families("study")["gallego/4"]),
        ("study/boustati", [n for n in options("study") if n in _within("study", "boustati")]),
        ("experiments", options("experiment")),
        ("studies", options("study")),
        ("attackers/words", families("attacker")["words"]),
    ],
)
def test_family_is_listed_like_a_role(word, names, list_lines):
    assert [line.split("\t")[0] for line in list_lines(word)] == names
    assert [json.loads(line)["name"] for line in list_lines(word, "--json")] == names


def test_json_of_everything_keeps_its_format(list_lines):
    objects = map(json.loads, list_lines("--json"))
    keys = {(entry["group"], *entry) for entry in objects}
    papers = (*registry.ROLES, "published")
    assert keys == {
        (group, "group", "name", "sentence", "paper" if group in papers else "of")
        for group in GROUPS
    }


def test_texts_name_existing_files():
    for group in ("experiment", "study", "published"):
        names = [
            name
            for listed in load_untrusted(CONF / "texts.yaml")[group].values()
            for name in listed
        ]
        assert set(names) <= set(options(group))
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("role", registry.ROLES)
def test_list_of_a_role_has_name_sentence_and_paper(role, list_lines):
    lines = [line.split("\t") for line in list_lines(role)]
    assert [line[0] for line in lines] == registry.names(role)
    assert all(len(line) == 3 and line[1] and not line[1].endswith(".") for line in lines)


def test_source_keeps_its_equation_number():
    sources = {entry.name: entry.source for entry in catalogue("inference")}
    assert sources["q_learning"] == "Gallego (2021), eq. (4.1)"
    assert (
        sources["fpq_learning"]
        == "Gallego (2021), eqs. (4.2) and (4.3), Algorithm 4.4 and sections 4.3.1 and 4.3.5"
    )


def test_plugin_is_listed_too(tmp_path, monkeypatch, list_lines):
    (tmp_path / "my_method.py").write_text(
        "from components.contracts.roles import Inference\n"
        "from components.registry import register\n"
        "@register('inference', 'my_method')\n"
        "class Mine(Inference):\n"
        "    '''A method of mine.\n\n    Source: Me (2024), eq. (1).'''\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    lines = list_lines("inference", "--plugin", "my_method")
    assert "my_method\tA method of mine\tMe (2024), eq. (1)" in lines
