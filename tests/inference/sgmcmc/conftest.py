"""A user's matrices of the recipe."""

import sys
import types

import pytest


@pytest.fixture
def offer_matrices(monkeypatch):
    """Add a function ``matrices`` to a module ``own_recipe``."""

    def offer(matrices):
        module = types.ModuleType("own_recipe")
        vars(module)["matrices"] = matrices
        monkeypatch.setitem(sys.modules, "own_recipe", module)

    return offer
