"""Suites of attackers: each problem has a norm, which bounds the attackers with a key for it.

An attacker that is always bounded in another norm is not applicable to the problem.
"""

from __future__ import annotations

from dataclasses import replace

from runner.arena.suite import Suite
from runner.catalogue.list_and_show import choose_components
from runner.catalogue.words import explicit_keys
from runner.compose.expand import component_defaults
from runner.study.snapshot import FrozenRun

NORM_KEY = "norm"


def choose_norm(suite: Suite, problem: str, overrides: list[str]) -> list[str]:
    """Overrides that give a row's attacker the norm of a problem.

    Empty if the suite has no norms, the attacker has no such key, or the user has set it.
    """
    if problem not in suite.norms or f"attacker.{NORM_KEY}" in explicit_keys(overrides):
        return []
    attacker = choose_components(overrides).get("attacker", "")
    has_norm = NORM_KEY in component_defaults("attacker", attacker)
    return [f"attacker.{NORM_KEY}={suite.norms[problem]}"] if has_norm else []


def refuse_other_norm(suite: Suite, problem: str, run: FrozenRun) -> FrozenRun:
    """The run, marked as refused if its attacker is bounded in a norm other than the problem's."""
    norm = suite.norms.get(problem)
    if norm is None or run.refused:
        return run
    from components.contracts.attackers import Evasion
    from runner.compose.check import build_component

    attacker = build_component("attacker", run.config["attacker"], "attacker")
    measure = attacker.measure() if isinstance(attacker, Evasion) else "no norm"
    if measure == norm:
        return run
    why = f"attacker={attacker.name} is bounded in {measure}, but the problem requires {norm}"
    return replace(run, config={}, signature="", refused=why, unfit=True)
