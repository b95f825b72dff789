"""Names of versions before this one still work, and say what they are called now."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import ClassVar

import pytest

from components.contracts.attackers import Opponent
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.errors import ConfigMismatchError
from components.inference import chains
from components.inference.sgmcmc.sgld import SGLD
from components.old_names import (
    CLASS_VARS,
    METHODS,
    adopt_old_methods,
    read_old_names,
    resolve_old_name,
)
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
    with pytest.warns(
        FutureWarning, match=r"sequences\.lgssm\.LgssmSeries is now components\.series"
    ):
        from components.datasets.sequences.lgssm import LgssmSeries
    assert LgssmSeries.__module__ == "components.series.sequence_data.lgssm"


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


def test_old_class_vars_of_a_plugin_are_the_new_ones():
    with pytest.warns(FutureWarning) as warned:

        class Mine(SGLD):
            sees: ClassVar[str] = "whole"
            needs: ClassVar[frozenset[str]] = SGLD.needs | {"network"}
            before: ClassVar[dict[str, int]] = {"lr": 1}

    class Further(Mine):
        requires = Requirements(capabilities=frozenset())

    said = {str(warning.message).partition(";")[0] for warning in warned}
    assert said == {
        "SGLD.needs is now SGLD.requires.capabilities",
        "Mine.before is now Mine.legacy_defaults",
        "Mine.needs is now Mine.requires.capabilities",
        "Mine.sees is now Mine.requires.batch_kind",
    }
    assert Path(warned[1].filename) == Path(__file__)
    assert Mine.requires.capabilities == {"log_joint", "network"}
    assert Mine.requires.kinds == SGLD.requires.kinds
    assert Further.requires.capabilities == frozenset()
    assert Further.requires.batch_kind == "whole"
    assert Further.legacy_defaults == {"lr": 1}
    with pytest.warns(FutureWarning, match=r"Further\.sees is now"):
        assert Further.model_construct().sees == "whole"


def test_requirements_of_several_bases_follow_the_mro():
    class Dataless(Model):
        requires = Requirements(kinds=frozenset({"density"}), targets=frozenset({"real"}))

    class Left(Dataless):
        requires = Requirements(targets=frozenset({"binary"}))

    class Right(Dataless):
        requires = Requirements(kinds=frozenset({"game"}), targets=frozenset({"classes"}))

    class Both(Left, Right):
        pass

    assert Both.requires == Requirements(kinds=frozenset({"game"}), targets=frozenset({"binary"}))


def test_new_class_vars_exist():
    from components.contracts import attackers, roles

    for role, names in CLASS_VARS.items():
        cls = getattr(roles, role, None) or getattr(attackers, role)
        for new in names.values():
            first, _, field = new.partition(".")
            declared = Requirements if field else cls
            annotations = {
                k for base in declared.__mro__ for k in vars(base).get("__annotations__", {})
            }
            assert (field or first) in annotations, (role, new)


def test_new_methods_exist():
    from components.contracts import attackers, roles

    classes = [*vars(roles).values(), *vars(attackers).values()]
    for new in METHODS.values():
        assert any(isinstance(cls, type) and new in vars(cls) for cls in classes), new


def test_an_opponent_that_leads_others_may_say_so_by_the_old_name():
    with pytest.warns(FutureWarning, match=r"Leader\.kinds is now Leader\.requires\.kinds"):

        class Leader(Opponent):
            kinds = frozenset({"game"})

            def seated(self, seats):
                return []

    with pytest.warns(FutureWarning, match=r"Leader\.seated is now Leader\.assign_seats"):
        assert _declare("attacker", "leader", Leader).assign_seats is Leader.seated
