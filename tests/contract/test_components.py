"""Every component keeps the house's contract: name = YAML = file, defaults in YAML alone, a source,
resumable steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from components import registry
from components.contracts import attackers, roles
from components.contracts.capabilities import CAPABILITIES
from runner.catalogue.list_and_show import describe, explain_keys
from runner.compose.build import build_component
from runner.compose.parts import expand_component
from runner.disk.yaml_comments import read_file

ROOT = Path(__file__).parent.parent.parent

ALL = [(role, name) for role in registry.ROLES for name in registry.names(role)]


@pytest.mark.parametrize(("role", "name"), ALL)
def test_yaml_and_class_agree(role, name):
    cls = registry.get(role, name)
    path = ROOT / "conf" / role / f"{name}.yaml"
    assert path.exists(), f"{role} {name} has no YAML"
    values = OmegaConf.to_container(OmegaConf.load(path))
    assert values["name"] == name
    assert set(values) == cls.yaml_keys(), (
        "the YAML holds every key of the class and of its threat, and no other"
    )
    assert [k for k, f in cls.model_fields.items() if not f.is_required()] == [], (
        "defaults live in the YAML alone"
    )
    if "???" not in values.values():
        # The defaults satisfy the class's own constraints; components named inside it are built
        # from their YAML first.
        build_component(role, expand_component(role, values, role), role)
    bases = tuple((vars(roles) | vars(attackers))[base] for base in registry.ROLES[role].bases)
    assert issubclass(cls, bases)
    if role == "model":
        models = {registry.get(role, other) for other in registry.names(role)}
        between = [c for c in cls.__mro__[1:] if issubclass(c, bases) and c not in bases]
        assert models.isdisjoint(between), "a model is no base of another"
        assert sum("offers" in vars(c) for c in between) <= 1, "no inheritance deeper than one"


@pytest.mark.parametrize(
    ("role", "path"), [(r, p) for r in registry.ROLES for p in (ROOT / "conf" / r).glob("*.yaml")]
)
def test_every_yaml_has_its_class_and_comments(role, path):
    assert path.stem in registry.names(role)
    # Its own, or that of a class which several components share.
    for key in explain_keys(read_file(path)[0], describe(role, path.stem)[1]):
        assert key.comment or key.path == "name", f"{path.name}: {key.path} has no comment"


@pytest.mark.parametrize("role", registry.ROLES)
def test_every_component_has_a_sentence_and_a_source(role):
    for entry in registry.catalogue(role):
        assert len(entry.sentence) > 10, entry.name
        assert entry.source, f"{role} {entry.name} names no source"


def test_facts_are_declared():
    for name in registry.names("model"):
        cls = registry.get("model", name)
        assert cls.requires.kinds
        assert cls.offers <= set(CAPABILITIES), name
    for name in registry.names("inference"):
        cls = registry.get("inference", name)
        assert cls.requires.kinds
        assert cls.requires.capabilities <= set(CAPABILITIES), name
