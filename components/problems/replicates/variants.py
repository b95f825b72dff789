"""Posteriors of one problem under several settings, learned in parallel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from components.contracts.posteriors import Predicts

V = TypeVar("V")


@dataclass(frozen=True)
class Variants:
    """A posterior for each setting, by its name."""

    of: dict[str, Predicts]

    def each(self, f: Callable[[Predicts], dict[str, V]]) -> dict[str, V]:
        """Results of f for each variant, under ``name/variant``."""
        results = ((variant, f(posterior)) for variant, posterior in self.of.items())
        return {
            f"{name}/{variant}": value
            for variant, result in results
            for name, value in result.items()
        }
