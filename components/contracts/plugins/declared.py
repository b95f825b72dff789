"""Comparison of the declarations in a user's component class with its role's requirements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from components.contracts import attackers, problems, roles
from components.contracts.capabilities import CAPABILITIES, SYSTEMS
from components.contracts.plugins.protocols import to_word
from components.contracts.posteriors import POSTERIORS
from components.contracts.requirements import gives_requirement
from components.contracts.user_code import format_code_location
from components.errors import ConfigMismatchError

# Methods that a class must define itself, with their signatures, by base class.
METHODS: dict[type, dict[str, str]] = {
    roles.Dataset: {"load": "load(self, rng, setting) -> Problem"},
    roles.Model: {"build": "build(self, problem, rng) -> built model"},
    roles.Inference: {
        "init": "init(self, model, problem, rng) -> State",
        "step": "step(self, state, batch, rng) -> (State, Info)",
        "posterior": "posterior(self, state) -> Posterior",
    },
    roles.Gradient: {
        "init": "init(self, module, rng) -> state",
        "estimate": "estimate(self, module, batch, rng, state) -> (gradients, terms, state)",
    },
    roles.Block: {"terms": "terms(self, facts) -> Terms"},
    attackers.Evasion: {"perturb": "perturb(self, victim, x, y, rng, eps) -> x'"},
    attackers.Contamination: {"corrupt": "corrupt(self, clean, rng) -> observations'"},
    attackers.Injection: {
        "struck": "struck(self, victim, rng) -> Tensor",
        "shift": "shift(self, victim, rng, eps, found) -> Tensor",
    },
    attackers.Opponent: {
        "reset": "reset(self, seat, rng) -> state",
        "act": "act(self, state, turn, rng) -> actions",
        "observe": "observe(self, state, move) -> state",
    },
}

KINDS = frozenset(get_args(problems.Kind))
TARGETS = frozenset(get_args(problems.Target))
VALUES = frozenset(get_args(problems.Values))
DOMAINS = frozenset(get_args(problems.Domain))

# Allowed words or protocols in a class variable or a field of ``requires``: one of them, a set of
# them, or a dictionary of such sets by kind of problem.
WORDS: dict[str, frozenset[Any]] = {
    "kind": KINDS,
    "label_kind": TARGETS,
    "domain": DOMAINS,
    "values": VALUES,
    "knowledge": frozenset(get_args(attackers.Knowledge)),
    "simulates": SYSTEMS,
    "offers": CAPABILITIES,
    "provides": POSTERIORS,
    "provides_by_kind": POSTERIORS,
    "folds_replicates": KINDS,
    "requires.kinds": KINDS,
    "requires.targets": TARGETS,
    "requires.values": VALUES,
    "requires.domains": DOMAINS,
    "requires.simulated": SYSTEMS,
    "requires.batch_kind": frozenset(get_args(problems.BatchKind)),
    "requires.capabilities": CAPABILITIES,
    "requires.capabilities_by_kind": CAPABILITIES,
    "requires.alternatives_by_kind": CAPABILITIES,
}
SINGLE_WORDS = ("kind", "label_kind", "domain", "values", "knowledge", "requires.batch_kind")

# Class variables without a default.
REQUIRED: dict[type, tuple[str, ...]] = {
    roles.Dataset: ("kind",),
    roles.Model: ("requires.kinds", "offers"),
    roles.Inference: ("requires.kinds", "requires.capabilities", "provides"),
    roles.Gradient: ("requires.capabilities", "unbiased"),
}


def role_base_class(cls: type) -> type | None:
    """The base class of its role; None if it does not derive from one."""
    return next((base for base in METHODS if issubclass(cls, base)), None)


def check_declared(role: str, name: str, cls: type) -> None:
    """Compare the declarations of a user's class with the requirements of its role.

    Raises:
        ConfigMismatchError: it does not derive from a base class of its role, lacks a method or a
        class variable, or declares an unknown word."""
    where = f"{role}={name} ({format_code_location(cls)})"
    base = role_base_class(cls)
    if base is None:
        raise ConfigMismatchError(
            f"{where}: {cls.__name__} does not derive from a base class in components.contracts, "
            f"which a {role} requires"
        )
    _check_methods(where, cls, base)
    for variable in REQUIRED.get(base, ()):
        _, _, requirement = variable.partition("requires.")
        returned = vars(base).get(variable)
        if requirement:
            fix = f"declare requires = Requirements({requirement}=…) in the class"
        elif returned:
            fix = (
                f"annotate the return type of {returned.method}, or declare {variable} in the class"
            )
        else:
            fix = f"declare {variable} = … in the class"
        if not (gives_requirement(cls, requirement) if requirement else hasattr(cls, variable)):
            raise ConfigMismatchError(f"{where}: {cls.__name__} has no {variable}; {fix}")
    for variable in WORDS:
        owner, _, requirement = variable.partition(".")
        if owner in base.__class_vars__ and hasattr(cls, owner):  # type: ignore[attr-defined]
            value = getattr(cls, owner)
            value = getattr(value, requirement) if requirement else value
            _check_words(f"{where}: {variable}", value, variable)


def _check_methods(where: str, cls: type, base: type) -> None:
    leads = base is attackers.Opponent and cls.assign_seats is not base.assign_seats  # type: ignore[attr-defined]
    for method, signature in METHODS[base].items():
        if not leads and getattr(cls, method) is getattr(base, method):
            raise ConfigMismatchError(f"{where}: {cls.__name__} has no {method}; write {signature}")


def _check_words(where: str, value: Any, variable: str) -> None:
    words = WORDS[variable]
    if isinstance(value, Mapping):
        _check_known_words(where, value, KINDS)
        for kind, some in value.items():
            _check_words(f"{where}[{kind!r}]", some, variable)
    elif variable in SINGLE_WORDS:
        _check_known_words(where, [] if value is None else [value], words)
    elif isinstance(value, set | frozenset):
        _check_known_words(where, value, words)
    elif value is not None:
        raise ConfigMismatchError(
            f"{where} is a {type(value).__name__}, but must be a set of words, {{…}}"
        )


def _check_known_words(where: str, given: Iterable[object], allowed: frozenset[Any]) -> None:
    by_word = {to_word(known_value): known_value for known_value in allowed}
    for value in sorted(given, key=str):
        if value not in allowed:
            near = [by_word[word] for word in get_close_matches(to_word(value), by_word, 1)]
            if near and isinstance(near[0], type):
                fix = f"import {near[0].__name__} from {near[0].__module__}"
            else:
                fix = (
                    f"did you mean {near[0]}?"
                    if near
                    else f"there are {', '.join(sorted(by_word)[:12])}"
                )
            raise ConfigMismatchError(f"{where}: unknown word {to_word(value)!r}; {fix}")
