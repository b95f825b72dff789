"""Examples in docstrings of roles and of the Python interface, run as doctests."""

from __future__ import annotations

import ast
import doctest
import inspect
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pytest

import runner
from components.problems.supervised import Supervised
from components.registry import ROLES

ROLE_CLASSES = [
    (f"components.contracts.{role.contract}", base)
    for role in ROLES.values()
    for base in role.bases
]
INTERFACE = [(f"runner.{module}", name) for name, module in runner._MODULE_BY_NAME.items()]
GAMES = [("runner.python.games", name) for name in ("parallel_env", "GameAsParallelEnv")]
MODULES = sorted({module for module, _ in [*ROLE_CLASSES, *INTERFACE, *GAMES]})


def find_public_members(cls: type) -> Iterator[tuple[str, object]]:
    """Methods and properties defined in a class."""
    for name, member in vars(cls).items():
        if not name.startswith("_") and (
            inspect.isfunction(member) or isinstance(member, property | cached_property)
        ):
            yield f"{cls.__name__}.{name}", member


def run_examples(name: str, owner: object, names: dict[str, object]) -> bool:
    """Run the examples of a docstring; returns False without examples.

    Args:
        name: for messages.
        owner: function, class or property with the docstring.
        names: names that the examples may use; theirs are added.
    """
    parser = doctest.DocTestParser()
    examples = parser.get_doctest(inspect.getdoc(owner) or "", names, name, name, 0)
    examples.globs = names
    report: list[str] = []
    result = doctest.DocTestRunner().run(examples, out=report.append, clear_globs=False)
    assert result.failed == 0, "".join(report)
    return result.attempted > 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Folder of records shared by all examples."""
    return tmp_path_factory.mktemp("examples")


@pytest.mark.parametrize("module", MODULES)
def test_doctests_pass(module, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("RUNNER_DATA_DIR", raising=False)
    monkeypatch.setattr(Supervised, "draw", lambda *_: {})  # figures are most of the time
    if module.endswith("games"):
        pytest.importorskip("pettingzoo")
    for where, name in [*ROLE_CLASSES, *INTERFACE, *GAMES]:
        if where != module:
            continue
        owner = vars(import_module(module))[name]
        names: dict[str, object] = {"__name__": module}
        assert run_examples(name, owner, names), f"{name} has no example"
        if (where, name) in ROLE_CLASSES or not inspect.isclass(owner):
            continue
        for member, function in find_public_members(owner):
            assert run_examples(member, function, dict(names)), f"{member} has no example"


@pytest.mark.parametrize(("module", "name"), ROLE_CLASSES)
def test_role_methods_have_docstrings(module, name):
    for member, function in find_public_members(vars(import_module(module))[name]):
        assert inspect.getdoc(function), f"{member} has no docstring"


def test_stub_exports_the_names_of_the_module():
    stub = ast.parse(Path(runner.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    names = {
        alias.asname
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert names | {"CONF"} == set(runner.__all__)
