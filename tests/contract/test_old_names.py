"""Names of versions before this one still work, and say what they are called now."""

from __future__ import annotations

import pytest

from components.contracts.attackers import Opponent
from components.contracts.roles import Model
from components.inference import chains
from components.old_names import FUNCTIONS, METHODS, adopt_old_methods
from runner.compose.build import _declare


@pytest.mark.parametrize(("old", "new"), FUNCTIONS["components.inference.chains"].items())
def test_an_old_function_is_the_new_one(old, new):
    with pytest.warns(
        FutureWarning, match=rf"chains\.{old} is now components\.inference\.chains\.{new}"
    ):
        assert getattr(chains, old) is vars(chains)[new]


def test_a_name_that_never_was_is_no_attribute():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        chains.nothing  # noqa: B018


def test_an_old_method_of_a_plugin_is_called():
    class Mine(Model):
        def offered(self):
            return frozenset({"log_joint"})

    with pytest.warns(FutureWarning, match=r"Mine\.offered is now Mine\.capabilities"):
        adopt_old_methods(Mine)
    assert Mine.model_construct(name="mine").capabilities() == {"log_joint"}


def test_new_methods_exist():
    from components.contracts import attackers, roles

    classes = [*vars(roles).values(), *vars(attackers).values()]
    for new in METHODS.values():
        assert any(isinstance(cls, type) and new in vars(cls) for cls in classes), new


def test_an_opponent_that_leads_others_may_say_so_by_the_old_name():
    class Leader(Opponent):
        kinds = frozenset({"game"})

        def seated(self, seats):
            return []

    with pytest.warns(FutureWarning, match=r"Leader\.seated is now Leader\.assign_seats"):
        assert _declare("attacker", "leader", Leader).assign_seats is Leader.seated
