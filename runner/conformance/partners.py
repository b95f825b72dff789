"""Search for the smallest partners that complete a component to a run."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from components import registry
from components.contracts.attackers import Evasion
from components.contracts.user_code import is_foreign
from components.registry import REQUIRED
from runner.catalogue.class_description import nested_roles
from runner.catalogue.settings import Values
from runner.compose.check import build_component, check_data
from runner.compose.expand import component_defaults, expand_component
from runner.compose.pairs import check_labels, check_pairs
from runner.errors import ConfigError

SMALL_RUNS = yaml.safe_load(Path(__file__).with_name("small.yaml").read_text("utf-8"))
SMALL: dict[str, dict[str, list[str]]] = SMALL_RUNS["small"]
KINDS_TO_TRY = ("supervised", "unlabelled", "sequence", "density", "game")
Part = tuple[str, str]  # role, name
Keys = tuple[str, ...]  # "key=value" for one component
SmallPart = tuple[str, str, Keys]


@dataclass(frozen=True)
class SmallRun:
    """Components of a run and the keys that make it small."""

    choice: tuple[Part, ...]
    keys: Keys  # overrides role.key=value

    @property
    def overrides(self) -> list[str]:
        """Overrides as a user would type them."""
        return [*(f"{role}={name}" for role, name in self.choice), *self.keys]

    def __str__(self) -> str:
        return "-".join(name for _, name in self.choice)


@dataclass(frozen=True, eq=False)
class PartnerSearch:
    """Partners of components, cheap ones first.

    Args:
        small: keys that make a component small, by role and name.
        asked: keys that insert a nested component, by role, such as ``gradient=mine`` of an
            inference method.
    """

    small: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=lambda: SMALL)
    asked: Mapping[str, Keys] = field(default_factory=dict)

    def small_keys(self, role: str, name: str) -> list[str]:
        """Keys that make a component small.

        Built-in samplers and attacks have such keys by class; plug-ins keep their defaults.
        """
        keys = list(self.small.get(role, {}).get(name, []))
        cls = registry.get(role, name)
        if is_foreign(cls):
            return keys
        given = {key.split("=")[0] for key in keys}
        if role == "inference":
            chain_keys = cls.model_fields.keys() - given
            keys += [key for key in SMALL_RUNS["chains"] if key.split("=")[0] in chain_keys]
        is_continuous = vars(cls).get("domain", "continuous") == "continuous"
        if issubclass(cls, Evasion) and is_continuous and "eps" not in given:
            keys = [SMALL_RUNS["grid"], *keys]
        return keys

    def required_keys(self, role: str, choice: Iterable[Part]) -> Keys:
        """Keys of a role that the other components of a choice require."""
        asking = SMALL_RUNS["with"]
        partners = (asking.get(part, {}).get(name, {}).get(role, []) for part, name in choice)
        return (*itertools.chain(*partners), *self.asked.get(role, ()))

    def small_run(self, choice: Iterable[Part]) -> SmallRun:
        """Run of chosen components, with the keys that make it small."""
        choice = tuple(choice)
        keys = [
            f"{role}.{key}"
            for role, name in choice
            for key in [*self.small_keys(role, name), *self.required_keys(role, choice)]
        ]
        return SmallRun(choice, tuple(keys))

    def list_names(self, role: str) -> list[str]:
        """Names of a role, cheap ones first."""
        names = registry.names(role)
        first = [name for name in SMALL_RUNS["first"][role] if name in names]
        return first + [name for name in names if name not in first]

    def fits(self, dataset: str, model: str, inference: str, attacker: str | None) -> bool:
        """True if the components form a valid run."""
        choice = list(zip(REQUIRED, (dataset, model, inference), strict=True))
        data, *parts = ((role, name, self.required_keys(role, choice)) for role, name in choice)
        parts += [] if attacker is None else [("attacker", attacker, ())]
        if not all(self.fits_data(data, part) for part in parts):
            return False
        try:
            first, second, third, *others = (self.build(*part) for part in (data, *parts))
            check_pairs(first, second, third, next(iter(others), None))
        except ConfigError:
            return False
        return True

    def _expand(self, role: str, name: str, keys: Keys) -> Values:
        """Full mapping of a small component, from its YAML."""
        pairs = (pair.partition("=") for pair in [*self.small_keys(role, name), *keys])
        small = {key: yaml.safe_load(value) for key, _, value in pairs}
        return expand_component(role, component_defaults(role, name) | small, role)

    @cached_property
    def build(self) -> Callable[[str, str, Keys], Any]:
        """Cached function that builds a small component from a role and a name."""
        return cache(lambda *part: build_component(part[0], self._expand(*part), part[0]))

    @cached_property
    def fits_data(self) -> Callable[[SmallPart, SmallPart], bool]:
        """Cached predicate: a component supports a dataset."""

        def fits(dataset: SmallPart, part: SmallPart) -> bool:
            with contextlib.suppress(ConfigError):
                check_data(self.build(*dataset), part[0], self._expand(*part))
                check_labels(self.build(*dataset), self.build(*part), part[0])
                return True
            return False

        return cache(fits)

    def find_run(self, kind: str, **fixed: str) -> SmallRun:
        """First run on a problem of a kind with the given components.

        Raises:
            LookupError: there is no such run.
        """
        choices = [[fixed[role]] if role in fixed else self.list_names(role) for role in REQUIRED]
        datasets, models, methods = (
            [name for name in names if _takes(role, name, kind)]
            for role, names in zip(REQUIRED, choices, strict=True)
        )
        models = self._with_place("model", models)
        methods = self._with_place("inference", methods)
        attackers = (
            [fixed["attacker"]] if "attacker" in fixed else [None, *self.list_names("attacker")]
        )
        for attacker, *names in itertools.product(attackers, datasets, models, methods):
            dataset, model, method = map(str, names)
            if self.fits(dataset, model, method, attacker):
                choice = dict(zip(REQUIRED, (dataset, model, method), strict=True))
                choice |= {"attacker": attacker} if attacker else {}
                return self.small_run(choice.items())
        raise LookupError(f"no {kind} run with {fixed}")

    def _with_place(self, role: str, names: list[str]) -> list[str]:
        """Names of a role with a key for the requested nested component."""
        keys = {key.partition("=")[0] for key in self.asked.get(role, ())}
        if not keys:
            return names
        classes: dict[str, type[BaseModel]] = {name: registry.get(role, name) for name in names}
        return [name for name, cls in classes.items() if keys <= nested_roles(cls).keys()]

    def find_runs(self, role: str, name: str, **fixed: str) -> tuple[SmallRun, ...]:
        """Runs with a component, one for each kind of problem with compatible partners.

        Raises:
            LookupError: no partner is compatible.
        """
        runs = []
        for kind in list_kinds(role, name):
            given = SMALL_RUNS["given"].get(role, {}).get(name, {}).get(kind, {})
            with contextlib.suppress(LookupError):
                runs.append(self.find_run(kind, **{role: name, **given, **fixed}))
        if not runs:
            raise LookupError(f"{role}={name}: no compatible partners")
        return tuple(runs)


def _takes(role: str, name: str, kind: str) -> bool:
    """True if a component supports problems of a kind."""
    cls = registry.get(role, name)
    return kind == cls.kind if role == "dataset" else kind in cls.requires.kinds


def list_kinds(role: str, name: str) -> list[str]:
    """Kinds of problem to try: all kinds of an inference method, one for other roles."""
    cls = registry.get(role, name)
    if role == "dataset":
        return [cls.kind]
    kinds = sorted(cls.requires.kinds)
    return kinds if role == "inference" else kinds[:1]


def find_runs_with_part(role: str, name: str, **fixed: str) -> tuple[SmallRun, ...]:
    """First run with a nested component: a gradient or a block.

    Raises:
        LookupError: no component has a key for it.
    """
    key, _, value = registry.ROLES[role].given.format(name).partition("=")
    outer, _, inner = key.partition(".")
    search = PartnerSearch(asked={outer: (f"{inner}={value}",)})
    for kind in KINDS_TO_TRY:
        with contextlib.suppress(LookupError):
            return (search.find_run(kind, **fixed),)
    raise LookupError(f"{role}={name}: no component has a key for it")
