"""Names of versions before this one still work, and say what they are called now."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import pytest

from components.contracts.attackers import Opponent
from components.contracts.roles import Model
from components.errors import ConfigMismatchError
from components.inference import chains
from components.old_names import METHODS, adopt_old_methods, read_old_names, resolve_old_name
from runner.compose.build import _declare

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("module", read_old_names()["names"])
def test_an_old_name_is_the_new_one(module):
    for old, new in read_old_names()["names"][module].items():
        imported = importlib.import_module(module)
        with pytest.warns(FutureWarning, match=rf"\.{old} is now {module}\.{new};"):
            assert resolve_old_name(module, old, "somewhere") is vars(imported)[new]


def test_an_old_module_is_the_new_one():
    with pytest.warns(
        FutureWarning, match=r"components\.trouble\.Misfit is now components\.errors"
    ):
        from components.trouble import Misfit
    assert Misfit is ConfigMismatchError
    with pytest.warns(FutureWarning, match=r"sequences\.lgssm\.Lgssm is now components\.series"):
        from components.datasets.sequences.lgssm import Lgssm
    assert Lgssm.__module__ == "components.series.sequence_data.lgssm"


def test_every_old_module_has_a_new_one():
    for old, new in read_old_names()["modules"].items():
        assert importlib.util.find_spec(new) is not None, old
        assert not (ROOT / old.replace(".", "/")).with_suffix(".py").exists(), old


def test_a_module_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"components\.datasets\.never"):
        importlib.import_module("components.datasets.never")


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
