"""Every component follows the project's contract: name = YAML = file, defaults only in YAML, a
source, resumable steps."""

from pathlib import Path

import pytest

from components import registry
from components.contracts import attackers, roles
from components.contracts.capabilities import CAPABILITIES
from runner.conformance.outcomes import CheckedComponent
from runner.conformance.source_checks import check_docstring, check_keys

ROOT = Path(__file__).parent.parent.parent

ALL = [(role, name) for role in registry.ROLES for name in registry.names(role)]


@pytest.mark.parametrize(("role", "name"), ALL)
def test_yaml_and_class_agree(role, name):
    cls = registry.get(role, name)
    check_keys(CheckedComponent(role, name, cls))
    bases = tuple((vars(roles) | vars(attackers))[base] for base in registry.ROLES[role].bases)
    assert issubclass(cls, bases)
    if role == "model":
        models = {registry.get(role, other) for other in registry.names(role)}
        between = [c for c in cls.__mro__[1:] if issubclass(c, bases) and c not in bases]
        assert models.isdisjoint(between), "a model is not a base class of another"
        assert sum("offers" in vars(c) for c in between) <= 1, "no inheritance deeper than one"


@pytest.mark.parametrize(
    ("role", "path"), [(r, p) for r in registry.ROLES for p in (ROOT / "conf" / r).glob("*.yaml")]
)
def test_every_yaml_has_its_class(role, path):
    assert path.stem in registry.names(role)


@pytest.mark.parametrize(("role", "name"), ALL)
def test_every_component_has_description_and_source(role, name):
    check_docstring(CheckedComponent(role, name, registry.get(role, name)))


def test_components_declare_their_facts():
    for name in registry.names("model"):
        cls = registry.get("model", name)
        assert cls.requires.kinds
        assert cls.offers <= CAPABILITIES, name
    for name in registry.names("inference"):
        cls = registry.get("inference", name)
        assert cls.requires.kinds
        assert cls.requires.capabilities <= CAPABILITIES, name
