"""Parts that do not fit each other, and what could be put in the place of one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from runner.errors import ConfigError


@dataclass(frozen=True)
class Offer:
    """Components that could take the place of one: named in a refusal if the whole composition
    takes them."""

    role: str
    lead: str  # the words of a message before their names
    needs: Set[str] = frozenset()  # capabilities that settings of a model may have to bring
    where: str = ""  # the key that holds the component; "": the role's own
    joint: str = "; "

    @property
    def key(self) -> str:
        """The key that a name is given to."""
        return self.where or self.role


@dataclass(frozen=True)
class SuggestedFix:
    """Settings that could resolve an incompatibility.

    They are shown if the whole composition accepts them, or if no settings are named.
    """

    text: str
    changes: Mapping[str, Any] = field(default_factory=dict)  # dotted keys and their values
    brings: Set[str] = frozenset()  # capabilities that the text's setting of the model brings

    @classmethod
    def from_setting(cls, verb: str, role: str, setting: str) -> SuggestedFix:
        """One key of a role's component with its value: "use model.posterior=sparse"."""
        key, _, value = setting.partition("=")
        return cls(f"{verb} {role}.{setting}", {f"{role}.{key}": value})


class IncompatibleError(ConfigError):
    """Components that do not fit as configured; ``offers`` and ``mends`` are not tried yet."""

    def __init__(self, problem: str, *offers: Offer, mends: tuple[SuggestedFix, ...] = ()):
        super().__init__(problem)
        self.problem = problem
        self.offers = offers
        self.mends = mends

    def inside(self, path: str, keys: Mapping[str, str]) -> IncompatibleError:
        """The same of parts inside another, which ``keys`` of it hold by role; ``path`` is said
        first."""
        moved = [
            replace(offer, where=keys[offer.role], lead=f"{keys[offer.role]} that would fit")
            for offer in self.offers
            if offer.role in keys and not offer.where
        ]
        others = [offer for offer in self.offers if offer.where]
        return IncompatibleError(f"{path}: {self.problem}", *moved, *others)


@contextmanager
def prefix_key_path(path: str, **keys: str) -> Iterator[None]:
    """Puts the key that holds a part before what is wrong with it; ``keys`` are the keys that hold
    parts by their role."""
    try:
        yield
    except IncompatibleError as error:
        raise error.inside(path, keys) from None


def list_names(names: list[str]) -> str:
    """Names as a complaint has them."""
    return ", ".join(names) if names else "none yet"


def kind_with_article(kind: str) -> str:
    """A kind of problem with its article."""
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
