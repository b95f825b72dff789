"""Suggestions in an incompatibility error: settings, names and experiments.

Settings and names are tried on the whole composition, which takes them.
"""

from __future__ import annotations

import re

import yaml

from components import registry
from components.contracts.requirements import misfit
from runner.catalogue.declarations import declaration
from runner.compose.fit.composition import Composition
from runner.compose.fit.incompatible import SETTINGS, IncompatibleError
from runner.compose.parts import all_parts
from runner.disk import conf_folders
from runner.disk.read_yaml import reading
from runner.errors import UnfitError

LEADS = {
    "inference": "inference that fits",
    "model": "models that fit",
    "attacker": "attackers that fit",
    "dataset": "datasets that fit",
}
MOST = 4  # experiments that are named


def add_suggested_fixes(error: IncompatibleError, whole: Composition) -> UnfitError:
    """Incompatibility error with its fixes; each setting and name works in the composition.

    If no name that the error is about works, the message suggests another component, or an
    experiment.
    """
    words = re.split(SETTINGS, error.fix) if error.fix else []
    # those that name no value are not tried
    changes = {
        key: yaml.safe_load(value) for key, _, value in (word.partition("=") for word in words)
    }
    is_fixed = bool(error.fix) and ("=" not in error.fix or whole.is_valid_with(changes))
    text = f"; set {error.fix}" if is_fixed else ""
    text += "".join(_try_names(whole, key) for key in error.keys)
    return UnfitError(f"{error.problem}{text or _suggest_alternatives(error, whole)}")


def _try_names(whole: Composition, key: str) -> str:
    """Names of components that work in the place of a key's; empty if there are none."""
    role = key.partition(".")[0]
    if role != key:
        held = all_parts(role, whole.values[role])
        role = next(inner for path, inner, _ in held if path == key)
    names = [name for name in registry.names(role) if name != whole.component_name_at(key)]
    if role != "dataset":  # most do not fit the data, which their classes decide
        data = whole.build("dataset", whole.values).data_facts()
        names = [name for name in names if not misfit(data, declaration(role, name).requires)]
    names = [name for name in names if whole.is_valid_with({key: name})]
    return f"; {LEADS.get(key, f'{key} that would fit')}: {', '.join(names)}" if names else ""


def _suggest_alternatives(error: IncompatibleError, whole: Composition) -> str:
    """Working alternatives if no name that an error is about works."""
    attacker = whole.component_name_at("attacker")
    if attacker and whole.is_valid_with({"attacker": None}):
        return f"; leave attacker={attacker} out (~attacker)"
    for role in ("inference", "model", "attacker"):
        if role not in error.keys and (text := _try_names(whole, role)):
            return text
    dataset = whole.values["dataset"]["name"]
    if experiments := _find_experiments(dataset):
        return f"; what dataset={dataset} is run with: {', '.join(experiments)}"
    return _try_names(whole, "dataset")


def _find_experiments(dataset: str) -> list[str]:
    """The first experiments that hold a dataset, as they are typed."""
    words = []
    for name in conf_folders.names("experiment"):
        file = conf_folders.find("experiment", name)
        assert file is not None
        with reading(file):
            text = file.read_text(encoding="utf-8")
        if re.search(rf"override /dataset: {dataset}\s", text):
            words.append(f"+experiment={name}")
    return words[:MOST]
