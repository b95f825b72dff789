"""Declarations of a component's class, as stored in the index of components."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import components
from components import registry
from components.contracts.requirements import ChoiceFacts, Requirements


@dataclass(frozen=True)
class ClassDeclaration:
    """Declarations of one class, as stored in the index."""

    role: str = ""
    name: str = ""
    path: str = ""  # file of the class, for built-in classes relative to ``components``
    docstring: str = ""
    fields: dict[str, str] = field(default_factory=dict)  # types, in words
    # roles of fields that hold components
    nested_roles: dict[str, str] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)  # comments on a field's line or above it
    facts: dict[str, Any] = field(default_factory=dict)  # class variables
    needs: dict[str, Any] = field(default_factory=dict)  # fields of ``requires``
    # keys passed to the components inside it
    inherited_keys: list[str] = field(default_factory=list)
    imports: list[str] = field(default_factory=list)  # keys with users' code, ``module:function``
    # keys that name a file, and the key that holds its checksum
    reads: dict[str, str] = field(default_factory=dict)
    names_data: bool = False  # True if a dataset's data depend on more than its keys

    @cached_property
    def file(self) -> Path:
        """File of the class."""
        return Path(components.__path__[0]) / self.path

    @cached_property
    def sentence(self) -> str:
        """First sentence of the docstring."""
        return registry.parse_docstring(self.docstring)[0]

    @cached_property
    def source(self) -> str:
        """Source named in the docstring, or empty."""
        return registry.parse_docstring(self.docstring)[1]

    @cached_property
    def keys(self) -> Set[str]:
        """Keys of the component's YAML."""
        return frozenset({*self.fields, "name"})

    @cached_property
    def integers(self) -> Set[str]:
        """Keys that hold only integers."""
        integer_types = ("integer", "list of integer")
        return frozenset(
            key
            for key, kind in self.fields.items()
            if kind.startswith(integer_types) and "number" not in kind
        )

    @cached_property
    def numbers(self) -> Set[str]:
        """Keys that hold numbers and no free text."""
        return frozenset(
            key
            for key, kind in self.fields.items()
            if ("number" in kind or "integer" in kind)
            and not ("text" in kind or "anything" in kind)
        )

    @cached_property
    def requires(self) -> Requirements:
        """Requirements that decide compatibility, with words in place of protocols."""
        return Requirements(**{name: _to_sets(value) for name, value in self.needs.items()})

    @cached_property
    def kinds(self) -> Set[str]:
        """Kinds of problems that the component poses or solves."""
        return self.words("kind") or self.requires.kinds

    def offered_facts(self) -> list[ChoiceFacts]:
        """Facts of a dataset, or of a model for each kind of problem, declared by its class.

        Capabilities of a model are those of all its settings.
        """
        if self.role == "dataset":
            kind, target, values, domain = map(
                self.facts.get, ("kind", "label_kind", "values", "domain")
            )
            simulates = self.words("simulates")
            return [ChoiceFacts(self.name, kind or "", target, values, domain, simulates=simulates)]
        offers = self.words("offers") | self.words("offers_where")
        model = f"model={self.name}"
        return [ChoiceFacts("", kind, model=model, offers=offers) for kind in self.kinds]

    def words(self, fact: str) -> Set[str]:
        """Words of a class variable that holds a word, a list or a mapping of words."""
        value = self.facts.get(fact) or ()
        return frozenset({value} if isinstance(value, str) else value)

    @property
    def pairing_words(self) -> dict[str, Set[str]]:
        """Words that decide compatibility, by their displayed names."""
        return {
            "kind": self.words("kind"),
            "target": self.words("label_kind"),
            "kinds": self.requires.kinds,
            "targets": self.requires.targets or frozenset(),
            "needs": frozenset(self.needs.get("capabilities", ())),
            "offers": self.words("offers"),
            "gives": self.words("provides"),
            "action": self.words("action"),
        }


def _to_sets(value: Any) -> Any:
    """Replace the lists in a value of the index by sets."""
    if isinstance(value, dict):
        return {key: _to_sets(inner) for key, inner in value.items()}
    return frozenset(value) if isinstance(value, list) else value
