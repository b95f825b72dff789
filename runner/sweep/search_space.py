"""Search space and method of a sweep: Optuna's distributions from Hydra's grammar, samplers, pruners
and the database of trials.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.types import ChoiceSweep, IntervalSweep, Override, RangeSweep, Sweep

from runner.disk.secrets import mask_secrets
from runner.errors import ConfigError, first_line
from runner.tracking.store import SQLITE_SCHEME, database_file, sqlite_uri

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

JOURNAL_SCHEME = "journal:///"
FILES = (SQLITE_SCHEME, JOURNAL_SCHEME)  # schemes of storages in a file
SAMPLERS = ("tpe", "random", "grid", "gp", "cmaes", "qmc", "nsgaii")
SINGLE_OBJECTIVE_SAMPLERS = ("cmaes",)
PRUNERS = ("none", "median", "halving", "hyperband")


def parse_space(overrides: Iterable[Override]) -> tuple[dict[str, BaseDistribution], list[str]]:
    """Search spaces by key, and fixed overrides; for a repeated key the last override counts.

    Raises:
        ConfigError: no key is searched, or the objective is.
    """
    by_key: dict[str, Override] = {}
    for override in overrides:
        by_key.pop(override.get_key_element(), None)  # the last override also determines the order
        by_key[override.get_key_element()] = override
    space = {key: distribution(swept) for key, swept in by_key.items() if swept.is_sweep_override()}
    if not space:
        raise ConfigError(
            "hydra/sweeper=optuna: no search space; write e.g. 'inference.lr=tag(log, interval(1e-4, 1e-1))'"
        )
    if "objective" in space:
        raise ConfigError(
            "objective: cannot be searched; give one value, or set several in hydra.sweeper.objectives"
        )
    fixed = [
        key if override.is_delete() else f"{key}={override.get_value_element_as_str()}"
        for key, override in by_key.items()
        if key not in space
    ]
    return space, fixed


def distribution(override: Override) -> BaseDistribution:
    """Search space of an override.

    Raises:
        ConfigError: a tag or a type of sweep is not supported.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    sweep = override.value()
    key = override.get_key_element()
    tags: set[str] = sweep.tags if isinstance(sweep, Sweep) else set()
    if tags - {"log"}:
        raise ConfigError(f"{key}: unknown tag {', '.join(sorted(tags - {'log'}))}; use log")
    if isinstance(sweep, IntervalSweep):
        return _interval(key, sweep, "log" in tags)
    if "log" in tags:
        raise ConfigError(f"{key}: the tag log requires interval(…)")
    if isinstance(sweep, RangeSweep) and not sweep.shuffle and sweep.step > 0:
        values = list(sweep.range())
        if len(values) > 1:
            kind = IntDistribution if all(isinstance(v, int) for v in values) else FloatDistribution
            return kind(values[0], values[-1], step=sweep.step)  # type: ignore[arg-type]
    if isinstance(sweep, RangeSweep | ChoiceSweep) or override.is_discrete_sweep():
        return CategoricalDistribution(list(override.sweep_string_iterator()))
    raise ConfigError(f"{key}: unsupported search space; use interval, range or choice")


def _interval(key: str, sweep: IntervalSweep, log: bool) -> BaseDistribution:
    """Search space of an interval.

    Raises:
        ConfigError: the interval is empty, infinite, or not positive on a logarithmic scale.
    """
    from optuna.distributions import FloatDistribution, IntDistribution

    low = sweep.start
    high = sweep.end
    assert low is not None  # guaranteed by the grammar
    assert high is not None
    if not low < high:
        raise ConfigError(f"{key}: interval({low:g}, {high:g}) is empty")
    if math.isinf(high - low):
        raise ConfigError(
            f"{key}: interval({low:g}, {high:g}) must have two finite ends, less than 1.8e308 apart"
        )
    if log and low <= 0:
        raise ConfigError(f"{key}: a logarithmic interval must begin above 0, not at {low:g}")
    if isinstance(low, int) and isinstance(high, int):
        return IntDistribution(low, high, log=log)
    return FloatDistribution(float(low), float(high), log=log)


def grid(space: Mapping[str, BaseDistribution]) -> dict[str, list[Any]]:
    """All values of each key.

    Raises:
        ConfigError: a key has infinitely many values.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    values: dict[str, list[Any]] = {}
    for key, domain in space.items():
        if isinstance(domain, CategoricalDistribution):
            values[key] = list(domain.choices)
        elif isinstance(domain, IntDistribution) and not domain.log:
            values[key] = list(range(domain.low, domain.high + 1, domain.step))
        elif isinstance(domain, FloatDistribution) and domain.step is not None:
            values[key] = [
                domain.low + k * domain.step
                for k in range(round((domain.high - domain.low) / domain.step) + 1)
            ]
        else:
            raise ConfigError(
                f"{key}: hydra.sweeper.sampler=grid requires a finite set of values; use choice(…) or range(…)"
            )
    return values


def params_to_overrides(params: Mapping[str, Any]) -> list[str]:
    """Overrides for the values of a trial; strings are already quoted for Hydra."""
    return [f"{k}={v if isinstance(v, str) else repr(v)}" for k, v in params.items()]


def sampler(
    name: str,
    seed: int,
    trial: int,
    startup_trials: int,
    space: Mapping[str, BaseDistribution] | None = None,
) -> Any:
    """Sampler of a trial, by its name in ``SAMPLERS``.

    Its seed depends only on (seed, trial); the order of a grid and the points of a quasi-random
    sequence depend on the seed.
    """
    import numpy as np
    from optuna import samplers
    from optuna.exceptions import ExperimentalWarning

    trial_seed = int(np.random.SeedSequence([seed, trial]).generate_state(1)[0])
    factories: dict[str, Callable[[], Any]] = {
        "tpe": lambda: samplers.TPESampler(n_startup_trials=startup_trials, seed=trial_seed),
        "random": lambda: samplers.RandomSampler(seed=trial_seed),
        "grid": lambda: samplers.GridSampler(grid(space or {}), seed=seed),
        "gp": lambda: samplers.GPSampler(
            n_startup_trials=startup_trials, seed=trial_seed, warn_independent_sampling=False
        ),
        "cmaes": lambda: samplers.CmaEsSampler(
            n_startup_trials=startup_trials, seed=trial_seed, warn_independent_sampling=False
        ),
        "qmc": lambda: samplers.QMCSampler(
            scramble=True,
            seed=seed,
            warn_asynchronous_seeding=False,
            warn_independent_sampling=False,
        ),
        "nsgaii": lambda: samplers.NSGAIISampler(
            population_size=max(2, startup_trials), seed=trial_seed
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return factories[name]()


def pruner(
    name: str, startup_trials: int, warmup_steps: int, reduction: int = 3, *, of: int | None = None
) -> Any:
    """Pruner by name; ``of`` is the number of steps of a complete trial."""
    from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner, SuccessiveHalvingPruner

    first = max(1, warmup_steps)
    if name == "median":
        return MedianPruner(n_startup_trials=startup_trials, n_warmup_steps=warmup_steps)
    if name == "halving":
        return SuccessiveHalvingPruner(min_resource=first, reduction_factor=reduction)
    if name == "hyperband":
        return HyperbandPruner(
            min_resource=first, max_resource=of or "auto", reduction_factor=reduction
        )
    return NopPruner()


def absolute(url: str) -> str:
    """URL of a storage with an absolute path, because jobs may be started in another folder.

    The path of a file is used literally, including percent signs and question marks."""
    if url.startswith(SQLITE_SCHEME):
        return sqlite_uri(Path(url.removeprefix(SQLITE_SCHEME)))
    if url.startswith(JOURNAL_SCHEME):
        return f"{JOURNAL_SCHEME}{Path(url.removeprefix(JOURNAL_SCHEME)).resolve()}"
    return url


def storage(url: str) -> Any:
    """Open the storage of trials: sqlite on one machine, a journal file or PostgreSQL if shared.

    Parallel jobs wait for each other's writes.

    Raises:
        ConfigError: the storage cannot be opened or created.
    """
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend
    from sqlalchemy.exc import SQLAlchemyError

    try:
        if url.startswith(FILES):
            file = database_file(url) or Path(url.removeprefix(JOURNAL_SCHEME))
            file.parent.mkdir(parents=True, exist_ok=True)
        if url.startswith(JOURNAL_SCHEME):  # its lock is a symbolic link, which is atomic on NFS
            return JournalStorage(JournalFileBackend(url.removeprefix(JOURNAL_SCHEME)))
        return RDBStorage(
            url, engine_kwargs={"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {}
        )
    except ImportError as error:
        fix = (
            "pip install 'bayes-runner[postgresql]'"
            if url.startswith("postgresql")
            else "install its driver"
        )
        raise ConfigError(
            f"hydra.sweeper.storage={mask_secrets(url)}: {error.name or 'the driver'} is not installed; {fix}"
        ) from None
    except (OSError, SQLAlchemyError, ValueError) as error:
        reason = mask_secrets(first_line(error))
        raise ConfigError(
            f"hydra.sweeper.storage={mask_secrets(url)}: cannot be opened ({reason})"
        ) from None
