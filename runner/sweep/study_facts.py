"""Identity of a search: the same command continues it, another command begins a new one."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.catalogue.settings import signed_overrides
from runner.disk.atomic import alive
from runner.errors import ConfigError
from runner.sweep.objectives import Objective
from runner.sweep.search_space import pruner

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage

Facts = dict[str, Any]


def build_study_facts(
    fixed: list[str], space: Mapping[str, BaseDistribution], objectives: Sequence[Objective]
) -> Facts:
    """Overrides of all trials, what is searched, and where to."""
    return {
        "fixed": sorted(signed_overrides(fixed)),
        "space": {key: str(value) for key, value in sorted(space.items())},
        "direction": [str(one) for one in objectives],
    }


def open_study(
    name: str,
    store: BaseStorage,
    objectives: Sequence[Objective],
    rule: tuple[str, int, int, int],
    facts: Facts,
) -> Study:
    """The study of that name, made if there is none, or if it holds only failures of another search.

    Args:
        rule: pruner, startup trials, warm-up steps and reduction.

    Raises:
        ConfigError: it is one of another search, or another process is at work on it.
    """
    import optuna
    from optuna.study import StudyDirection
    from optuna.trial import TrialState

    study = optuna.create_study(
        study_name=name,
        storage=store,
        load_if_exists=True,
        directions=[StudyDirection[one.direction.upper()] for one in objectives],
        pruner=pruner(*rule),
    )
    before = study.user_attrs.get("facts", facts)
    if before != facts:
        if any(t.state != TrialState.FAIL for t in study.get_trials(deepcopy=False)):
            changed = next(key for key in facts if before[key] != facts[key])
            raise ConfigError(
                f"hydra.sweeper.study_name={name}: begun with another {changed} "
                f"(it had {before[changed]}); give this sweep another name"
            )
        optuna.delete_study(study_name=name, storage=store)
        return open_study(name, store, objectives, rule, facts)
    holder = study.user_attrs.get("held by")
    if holder and _is_process_alive(holder):
        raise ConfigError(
            f"study {name} is already being swept (process {holder}); wait for it, or give another name"
        )
    return study


def _is_process_alive(holder: str) -> bool:
    """True if ``host:process`` is another living process of this machine.

    A process of another machine is assumed to be alive.
    """
    host, _, pid = holder.rpartition(":")
    return host != socket.gethostname() or (int(pid) != os.getpid() and alive(int(pid)))


def name_of(facts: Facts) -> str:
    """Name of a search composed by hand, without an experiment; unique to its command."""
    return f"custom_{hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]}"
