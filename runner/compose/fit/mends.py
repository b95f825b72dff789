"""Suggestions in an incompatibility error: settings, names and groups of names.

Each was tried on the whole composition and works.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from components import registry
from components.contracts.roles import Model
from components.registry import CHOSEN
from runner.catalogue.declarations import declaration
from runner.compose.fit.composition import Composition
from runner.compose.fit.incompatible import IncompatibleError, Offer, list_names
from runner.disk import conf_folders
from runner.disk.read_yaml import reading
from runner.errors import UnfitError

# Title of a list that replaces another list with no name that works.
LEADS = {
    "inference": "inference that fits the rest",
    "model": "models that fit the rest",
    "attacker": "attackers that fit the rest",
    "dataset": "datasets that fit the rest",
}
GROUPS = 4  # largest number of groups of parts, and experiments, that are named


def add_suggested_fixes(error: IncompatibleError, whole: Composition) -> UnfitError:
    """Incompatibility error with its fixes; each setting and name works in the composition.

    If no name that the error is about works, the message suggests replacements of one
    component, of two, or an experiment.
    """
    words = [
        mend.text
        for mend in error.mends
        if not (mend.changes or mend.brings) or whole.is_valid_with(mend.changes, mend.brings)
    ]
    text = "".join(f"; {word}" for word in words)
    for offer in error.offers:
        if names := _names(whole, offer):
            text += f"{offer.joint if text else '; '}{offer.lead}: {list_names(names)}"
    text = text or _suggest_alternatives(error, whole)
    return UnfitError(f"{error.problem}{text}{_missing_steps(whole) if text else ''}")


def _missing_steps(whole: Composition) -> str:
    """The hint to give a number of steps, and with which of the methods on offer where not all need
    one."""
    methods = whole.methods_that_work
    need, others = (
        sorted(name for name in methods if methods[name] is needs) for needs in (True, False)
    )
    if not need:
        return ""
    hint = "; give steps=… too"
    if not others:
        return hint
    return (
        f"{hint} with {list_names(need)}"
        if len(need) < len(others)
        else f"{hint}, but not with {list_names(others)}"
    )


def _candidates(whole: Composition, role: str, now: object) -> list[str]:
    """Components of a role that take part in problems of the dataset's kind, but for the one that
    is there."""
    kind = whole.kind
    names = [name for name in registry.names(role) if name != now]
    if role in ("dataset", "gradient", "block"):
        return names
    return [name for name in names if kind in declaration(role, name).kinds]


def _names(whole: Composition, offer: Offer) -> list[str]:
    """Components that work in the place of an offer; those that need settings include them."""
    names = []
    for name in _candidates(whole, offer.role, whole.component_name_at(offer.key)):
        if whole.is_valid_with({offer.key: name}):
            names.append(name)
        elif (settings := _settings(offer, name)) and whole.is_valid_with(
            {offer.key: name}, brings=offer.needs
        ):
            names.append(f"{name} ({', '.join(settings)})")
    return names


def _settings(offer: Offer, name: str) -> list[str]:
    """Settings of a model that bring the capabilities that an offer asks."""
    if offer.role != "model" or not offer.needs or offer.where:
        return []
    model: type[Model] = registry.get("model", name)
    if not offer.needs <= model.offers | model.offers_where.keys():
        return []
    return sorted({model.offers_where[capability] for capability in offer.needs - model.offers})


def _suggest_alternatives(error: IncompatibleError, whole: Composition) -> str:
    """Working alternatives if no name that an error is about works."""
    roles = list(dict.fromkeys([offer.role for offer in error.offers if offer.role in CHOSEN]))
    for role in dict.fromkeys([*roles, "inference", "model", "attacker"]):
        if role == "attacker" and (text := _without_attacker(whole)):
            return text
        if (
            names := _names(whole, Offer(role, ""))
            if whole.component_name_at(role) or role == "attacker"
            else []
        ):
            return f"; {LEADS[role]}: {list_names(names)}"
    if groups := _first(_groups(whole), GROUPS):
        return f"; parts that fit together: {', or '.join(groups)}"
    dataset = whole.values["dataset"]["name"]
    if experiments := _experiments(dataset):
        return f"; what dataset={dataset} is run with: {', '.join(f'+experiment={name}' for name in experiments)}"
    if names := _names(whole, Offer("dataset", "")):
        return f"; {LEADS['dataset']}: {list_names(names)}"
    return ""


def _without_attacker(whole: Composition) -> str:
    """Hint to leave the attacker out; "" if there is no attacker or that would not work."""
    name = whole.component_name_at("attacker")
    return (
        f"; leave attacker={name} out (~attacker)"
        if name and whole.is_valid_with({"attacker": None})
        else ""
    )


def _groups(whole: Composition) -> Iterator[str]:
    """Several parts that work with the rest: model and inference, either without the attacker or,
    in a game, with another."""
    attackers = _attackers(whole)
    models = _candidates(whole, "model", None)
    methods = _candidates(whole, "inference", None)
    for attacker in attackers[1:]:
        for role, names in (("inference", methods), ("model", models)):
            yield from (
                _format_changes(changes)
                for name in names
                if whole.is_valid_with(changes := {role: name, **attacker})
            )
    for attacker in attackers:
        for model in models:
            choices = ({"model": model, "inference": method, **attacker} for method in methods)
            # One method for each model, so that more models are listed.
            yield from _first(
                (_format_changes(changes) for changes in choices if whole.is_valid_with(changes)), 1
            )


def _attackers(whole: Composition) -> list[dict[str, str | None]]:
    """Options for the attacker: no change, leave it out, or another one in a game.

    A game needs an attacker.
    """
    nothing: list[dict[str, str | None]] = [{}]
    if whole.kind == "game":
        return nothing + [
            {"attacker": name}
            for name in _candidates(whole, "attacker", whole.component_name_at("attacker"))
        ]
    return nothing + ([{"attacker": None}] if whole.component_name_at("attacker") else [])


def _format_changes(changes: dict[str, str | None]) -> str:
    """Changes as the words of a command line."""
    return " ".join(
        f"~{role}" if name is None else f"{role}={name}" for role, name in changes.items()
    )


def _first(items: Iterable[str], n: int) -> list[str]:
    return [item for item, _ in zip(items, range(n), strict=False)]


def _experiments(dataset: str) -> list[str]:
    """Experiments that hold a dataset."""
    names = []
    for name in conf_folders.names("experiment"):
        file = conf_folders.find("experiment", name)
        assert file is not None
        with reading(file):
            text = file.read_text(encoding="utf-8")
        if re.search(rf"override /dataset: {dataset}\s", text):
            names.append(name)
    return names[:GROUPS]
