"""``runner list`` and ``runner show``: complete, quick, and true to the YAML and the classes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict
from typing import Annotated, ClassVar, Literal

import pytest
import yaml
from pydantic import Field, PositiveInt

from components import registry
from components.contracts import roles
from components.contracts.requirements import Requirements
from components.contracts.roles import Component, ZeroToOne
from runner import CONF
from runner.catalogue import list_and_show, listing
from runner.catalogue.class_description import describe_class
from runner.catalogue.declarations import CONFIG, catalogue, read_index
from runner.catalogue.families import families, find_citation
from runner.catalogue.list_and_show import (
    GROUPS,
    describe,
    explain_keys,
    options,
    selected_components,
)
from runner.catalogue.partners import partners
from runner.compose.settings import Settings
from runner.disk.yaml_comments import read_file, read_keys

FILES = sorted(CONF.rglob("*.yaml"))
COMPONENTS = [
    (role, name)
    for role in registry.ROLES
    for name in registry.names(role)
    if registry.file(role, name)
]


def _within(group: str, text: str) -> set[str]:
    found = families(group).items()
    return {name for family, names in found if family.split("/")[0] == text for name in names}


def main(argv: list[str]) -> int:
    module = listing if argv[0] == "list" else list_and_show
    return module.main(argv)


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "runner.commands.cli", *argv],
        capture_output=True,
        text=True,
        timeout=60,
    )


# ---- comments
# ---------------------------------------------------------------------------------------------------------
def leaves(content: object, prefix: str = "") -> dict[str, object]:
    out: dict[str, object] = {}
    for key, value in content.items() if isinstance(content, dict) else []:
        out[f"{prefix}{key}"] = value
        out |= leaves(value, f"{prefix}{key}.")
    return out


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_the_reader_agrees_with_the_parser_on_every_yaml(path):
    keys, content = read_file(path)
    expected = leaves(content)
    for key in keys:
        value = expected[key.path]
        if not key.nested and not (isinstance(value, str) and key.text == " ".join(value.split())):
            assert yaml.safe_load(key.text) == value
    # Mappings in flow style, {a: b}, are one line of their parent.
    missing = set(expected) - {key.path for key in keys}
    assert all(
        any(m.startswith(f"{k.path}.") and k.text.startswith("{") for k in keys) for m in missing
    )


@pytest.mark.parametrize(("role", "name"), COMPONENTS)
def test_every_key_of_every_component_has_a_comment_and_a_type(role, name):
    path = CONF / role / f"{name}.yaml"
    if not path.exists():
        pytest.skip("the contract test says that it has no YAML")
    own = describe(role, name)[1]
    for key in explain_keys(read_file(path)[0], own):
        if key.path != "name":
            assert key.comment, f"{role}.{key.path} has no comment"
            assert own.fields.get(key.path.split(".")[0]), f"{role}.{key.path} has no type"


def test_what_a_shared_key_means_is_said_once():
    """Where a class that several components share declares a key, its comment stands there; a YAML
    has one of its own only where it has more to say."""
    for role, name in COMPONENTS:
        own = describe(role, name)[1]
        shared = {
            key
            for base in registry.get(role, name).__mro__[1:]
            for key in vars(base).get("__annotations__", ())
        }
        for key in read_file(CONF / role / f"{name}.yaml")[0]:
            if key.path in shared and key.comment:
                assert key.comment != own.comments.get(key.path), (
                    f"{role}.{key.path} of {name} says it again"
                )


def test_the_comment_beside_a_declaration_is_shown(capsys):
    assert main(["show", "inference/sgld"]) == 0
    rows = {
        line.split("\t")[0]: line.split("\t")
        for line in capsys.readouterr().out.splitlines()
        if "\t" in line
    }
    assert rows["inference.schedule"][3].startswith(
        "of ε_t: constant, polynomial ε (1 + t/b)^−γ, or cyclical"
    )
    assert rows["inference.burn_in"][1:] == [
        "500",
        "integer ≥ 0",
        "steps before any state is kept; Gallego (2021) section 2.3.3",
    ]
    assert rows["inference.step_size"][3].startswith("ε: drift ε ∇log p")


def test_comments_inline_above_and_going_on_below():
    keys = read_keys(
        "# @package _global_\n"
        "# says what a is\n"
        "a: 1\n"
        "b: 'x # y'  # a quoted sign is no comment\n"
        "c: [1, 2]   # begins here\n"
        "            # and goes on\n"
        "# a heading, not about d\n"
        "\n"
        "d:          # holds more\n"
        "  e: null   # nested\n"
        "  f:\n"
        "f: x#y\n"
        "g:\n"
        "  - one\n"
        "  - {two: 2}\n"
        "h: >-\n"
        "  folded\n"
        "  text\n"
    )
    found = {key.path: (key.text, key.comment) for key in keys}
    assert found == {
        "a": ("1", "says what a is"),
        "b": ("'x # y'", "a quoted sign is no comment"),
        "c": ("[1, 2]", "begins here and goes on"),
        "d": ("", "holds more"),
        "d.e": ("null", "nested"),
        "d.f": ("null", ""),
        "f": ("x#y", ""),
        "g": ("[one, {two: 2}]", ""),
        "h": ("folded text", ""),
    }


# ---- declarations
# -----------------------------------------------------------------------------------------------------
def test_types_are_described_in_words():
    class Base(Component):
        requires = Requirements(kinds=frozenset({"game"}), batch_kind="rows")
        width: PositiveInt  # of a layer

    class Thing(Base):
        """One."""

        requires = Requirements(batch_kind="episode")
        target: ClassVar[str | None] = "real"
        link: Literal["probit", "logit"]
        # in units
        # of a step
        rate: Annotated[float, Field(gt=0, le=1)]
        rows: Annotated[int, Field(ge=1, le=9)] | None  # used rows
        p: ZeroToOne
        widths: list[PositiveInt]
        levels: Annotated[list[float], Field(min_length=1)]
        share: float | bool | None
        inner: roles.Model | None

    found = describe_class(Thing)
    assert found.fields == {
        "width": "integer > 0",
        "link": "probit | logit",
        "rate": "number > 0, ≤ 1",
        "rows": "integer ≥ 1, ≤ 9 or null",
        "p": "number ≥ 0, ≤ 1",
        "widths": "list of integer > 0",
        "levels": "list of number, at least 1 of them",
        "share": "number or true or false or null",
        "inner": "name of a model, or {name: …, its keys} or null",
    }
    assert found.comments == {
        "width": "of a layer",
        "rate": "in units of a step",
        "rows": "used rows",
    }
    assert found.holds == {"inner": "model"}
    assert found.integers == {"width", "rows", "widths"}
    assert found.numbers == {*found.integers, "rate", "p", "levels", "share"}
    assert (found.docstring, found.facts["target"], found.kinds) == ("One.", "real", {"game"})


@pytest.mark.parametrize(("role", "name"), COMPONENTS)
def test_the_index_has_the_declarations_of_the_class(role, name):
    described = asdict(describe_class(registry.get(role, name)))
    assert asdict(read_index()[f"{role}/{name}"]) == described, "run make index"


def test_the_index_has_the_run_level_keys_and_nothing_else():
    indexed = read_index()
    assert indexed.keys() == {CONFIG, *(f"{role}/{name}" for role, name in COMPONENTS)}
    assert asdict(indexed[CONFIG]) == asdict(describe_class(Settings)), "run make index"


# ---- the commands
# -----------------------------------------------------------------------------------------------------
def test_list_names_everything(capsys):
    assert main(["list", "--all"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert {(line[0], line[1]) for line in lines} >= {*COMPONENTS, ("experiment", "friend_or_foe")}
    assert all(len(line) == 4 for line in lines)


def test_list_begins_with_families_and_counts(capsys):
    assert main(["list"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    members = {(group, family): names.split(", ") for group, family, _, names in lines}
    assert all(int(count) == len(names.split(", ")) for _, _, count, names in lines)
    assert members["inference", "mcmc"] == sorted(members["inference", "mcmc"])
    assert {"mala", "gibbs"} & set(members["inference", "mcmc"])
    for group in GROUPS:
        listed = [name for (role, _), names in members.items() if role == group for name in names]
        assert sorted(listed) == options(group), group


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (120, 40), (200, 50)])
def test_families_fit_on_a_screen_and_name_the_next_command(width, height):
    found = {group: families(group) for group in GROUPS}
    lines = ["".join(line) for line in listing.overview_lines(found, width, height)]
    assert len(lines) < height  # a line is the prompt's
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert all(f" {len(options(group))}  " in text for group in GROUPS)
    assert "runner list inference/sgmcmc" in text
    assert bool(re.search(r"gallego \d+ \(ch. 1: ", text)) == (height > 24)


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
def test_a_family_is_listed_as_a_role_is(word, names, capsys):
    assert main(["list", word]) == 0
    assert [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()] == names
    assert main(["list", word, "--json"]) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["name"] for one in objects] == names


def test_json_of_everything_has_its_form_of_before(capsys):
    assert main(["list", "--json"]) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    keys = {(one["group"], *one) for one in objects}
    papers = (*registry.ROLES, "published")
    assert keys == {
        (group, "group", "name", "sentence", "paper" if group in papers else "of")
        for group in GROUPS
    }


def test_chapters_are_read_from_citations():
    assert find_citation("Boustati (2021), Tables 3.1 and A.2") == "boustati/3"
    assert find_citation("with the settings of Boustati A.1.2") == "boustati/3"
    assert find_citation("a filter (Boustati D.3.3), after Gallego Fig 3.8") == "boustati/6"
    assert find_citation("Table 2.6 of Gallego (2021): a model") == "gallego/2"
    assert find_citation("All equilibria (Gallego 4.B, 4.C)") == "gallego/4"
    assert find_citation("the partition sampled (Bardenet chapter 7)") == "bardenet/7"
    assert find_citation("Rodríguez Santana and Hernández-Lobato (2020), 6.3") == "rodriguez"
    assert find_citation("Bishop 10.2, at a rate of 1.5") == "other"


@pytest.mark.parametrize("role", registry.ROLES)
def test_list_of_a_role_gives_name_sentence_and_paper(role, capsys):
    assert main(["list", role]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == registry.names(role)
    assert all(len(line) == 3 and line[1] and not line[1].endswith(".") for line in lines)


def test_a_source_keeps_the_number_of_its_equation():
    sources = {entry.name: entry.source for entry in catalogue("inference")}
    assert sources["q_learning"] == "Gallego (2021), eq. (4.1)"
    assert (
        sources["fpq_learning"]
        == "Gallego (2021), eqs. (4.2) and (4.3), Algorithm 4.4 and sections 4.3.1 and 4.3.5"
    )


def test_show_of_a_component(capsys):
    assert main(["show", "inference/level_k"]) == 0
    out = capsys.readouterr().out
    assert "model     q_linear, q_network, q_table" in out
    assert "components/games/agents/level_k.py" in out
    assert "Algorithm 4.1" in out
    rows = {
        line.split("\t")[0]: line.split("\t")[1:]
        for line in out.splitlines()
        if line.startswith("inference.")
    }
    assert rows["inference.epsilon"][:2] == [
        "0.1",
        "number ≥ 0, ≤ 1 or {start: …, factor: …, every: …}",
    ]
    assert rows["inference.policy"][1] == "epsilon_greedy | softmax"
    assert "probability" in rows["inference.epsilon"][2]


def test_show_of_the_run_level_keys(capsys):
    assert main(["show", "config"]) == 0
    rows = {
        line.split("\t")[0]: line.split("\t")
        for line in capsys.readouterr().out.splitlines()
        if "\t" in line
    }
    assert rows["seed"][1:3] == ["0", "integer ≥ 0"]
    assert rows["dtype"][2] == "float64 | float32"
    assert all(row[3] for row in rows.values())


def test_show_of_an_experiment(capsys):
    assert main(["show", "+experiment=friend_or_foe"]) == 0
    out = capsys.readouterr().out
    assert "runner +experiment=friend_or_foe" in out
    assert "attacker  exponential_smoother" in out
    assert (
        selected_components(
            yaml.safe_load((CONF / "experiment" / "friend_or_foe.yaml").read_text())
        )["model"]
        == "q_table"
    )


def test_a_derived_experiment_shows_all_that_it_is_composed_of(monkeypatch, tmp_path):
    content = yaml.safe_load((CONF / "experiment" / "sarcos_cmdgp.yaml").read_text())
    assert selected_components(content) == {
        "dataset": "sarcos",
        "model": "cmdgp",
        "inference": "dsvi",
    }
    (tmp_path / "experiment").mkdir()
    for name, base in (("a", "b"), ("b", "a")):  # Hydra refuses it; the list must not hang
        (tmp_path / "experiment" / f"{name}.yaml").write_text(
            f"defaults: [{base}, override /model: {name}]\n"
        )
    monkeypatch.setattr("runner.disk.conf_folders.CONF", tmp_path)
    assert selected_components(
        yaml.safe_load((tmp_path / "experiment" / "a.yaml").read_text())
    ) == {"model": "a"}


@pytest.mark.parametrize(
    "name", [f"{g}/{n}" for g in ("experiment", "study", "published") for n in options(g)]
)
def test_show_of_every_file(name, capsys):
    assert main(["show", name]) == 0
    assert name in capsys.readouterr().out


@pytest.mark.parametrize("role", ["dataset", "model", "inference"])
def test_partners_are_those_the_runner_accepts(role):
    """The rules read from the text against ``check_pairs`` on the classes."""
    for name in registry.names(role):
        cls, own = registry.get(role, name), describe(role, name)[1]
        for other, names in partners(role, own):
            for partner in registry.names(other):
                pair = {role: cls, other: registry.get(other, partner)}
                assert (partner in names.split(", ")) == accepted(**pair), (name, partner)


def accepted(dataset=None, model=None, inference=None) -> bool:
    if dataset and model:
        target = (
            dataset.target is None
            or model.requires.targets is None
            or dataset.target in model.requires.targets
        )
        values = (
            dataset.values is None
            or model.requires.values is None
            or dataset.values in model.requires.values
        )
        reads = dataset.kind != "supervised" or dataset.domain in model.requires.domains
        return (
            dataset.kind in model.requires.kinds
            and target
            and values
            and reads
            and model.requires.simulated <= dataset.simulates
        )
    offered = model.offers | model.offers_where.keys()
    shared = model.requires.kinds & inference.requires.kinds
    requires = inference.requires
    ways = [requires.capabilities_by_kind.get(kind, frozenset()) for kind in shared]
    ways += [way for kind, way in requires.alternatives_by_kind.items() if kind in shared]
    return any(requires.capabilities | way <= offered for way in ways)


def test_exit_codes_and_streams():
    assert run("show", "inference/level_k").returncode == 0
    wrong = run("show", "inference/levelk")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "inference/levelk: no such inference, did you mean level_k?\n"
    assert run("list", "--nonsense").returncode == 2
    assert "tab-separated" in run("list", "--help").stdout


def test_a_plugin_is_listed_too(tmp_path, monkeypatch, capsys):
    (tmp_path / "my_method.py").write_text(
        "from components.contracts.roles import Inference\n"
        "from components.registry import register\n"
        "@register('inference', 'my_method')\n"
        "class Mine(Inference):\n"
        "    '''A method of mine.\n\n    Source: Me (2024), eq. (1).'''\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    assert main(["list", "inference", "--plugin", "my_method"]) == 0
    assert "my_method\tA method of mine\tMe (2024), eq. (1)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("module", "argv"),
    [
        ("listing", ["list"]),
        ("listing", ["list", "--all"]),
        ("list_and_show", ["show", "inference/level_k"]),
        ("list_and_show", ["show", "study/sarcos_table"]),
        ("list_and_show", ["show", "config"]),
    ],
)
def test_it_answers_without_torch(module, argv):
    code = f"import sys; from runner.catalogue.{module} import main; main({argv!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
