"""Identity of a search: the same command continues it, a different command begins a new one."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.catalogue.settings import hash_values, signed_overrides
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
    """Identity of a search: fixed overrides, search space and directions."""
    return {
        "fixed": sorted(signed_overrides(fixed)),
        "space": {key: str(value) for key, value in sorted(space.items())},
        "direction": [str(objective) for objective in objectives],
    }


def open_study(
    name: str,
    store: BaseStorage,
    objectives: Sequence[Objective],
    rule: tuple[str, int, int, int],
    facts: Facts,
) -> Study:
    """Open the study of that name, or create it if it does not exist or has only failures of another
    search.

    Args:
        rule: pruner, startup trials, warm-up steps and reduction.

    Raises:
        ConfigError: the study belongs to another search, or another process is using it.
    """
    import optuna
    from optuna.study import StudyDirection
    from optuna.trial import TrialState

    study = optuna.create_study(
        study_name=name,
        storage=store,
        load_if_exists=True,
        directions=[StudyDirection[objective.direction.upper()] for objective in objectives],
        pruner=pruner(*rule),
    )
    recorded = study.user_attrs.get("facts", facts)
    if recorded != facts:
        if any(t.state != TrialState.FAIL for t in study.get_trials(deepcopy=False)):
            changed = next(key for key in facts if recorded[key] != facts[key])
            raise ConfigError(
                f"hydra.sweeper.study_name={name}: exists with a different {changed} "
                f"({recorded[changed]}); choose another name for this sweep"
            )
        optuna.delete_study(study_name=name, storage=store)
        return open_study(name, store, objectives, rule, facts)
    holder = study.user_attrs.get("held by")
    if holder and _is_process_alive(holder):
        raise ConfigError(
            f"study {name} is in use by another sweep (process {holder}); wait for it, or choose another name"
        )
    return study


def _is_process_alive(holder: str) -> bool:
    """True if ``host:process`` is another living process.

    A process on another machine is assumed to be alive.
    """
    host, _, pid = holder.rpartition(":")
    return host != socket.gethostname() or (int(pid) != os.getpid() and alive(int(pid)))


def name_of(facts: Facts) -> str:
    """Name of a search without an experiment, unique to its command."""
    return f"custom_{hash_values(facts)[:8]}"
