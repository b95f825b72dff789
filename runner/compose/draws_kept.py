"""Number of draws that a sampler would keep of each chain.

It is computed from the sampler's configuration only, before any work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.contracts.requirements import CHAINS, LEFT_OUT, THINNING
from runner.compose.settings import Settings
from runner.errors import ConfigError

FEWEST = 4  # per chain, needed for ESS and R̂


def burn_in_key(keys: Mapping[str, Any]) -> str | None:
    """Key of the number of steps that keep no draws; None if the method has no such key.

    ``warmup`` of a method without chains is its KL warm-up and does not count.
    """
    return next(
        (key for key in LEFT_OUT if key in keys and (key != "warmup" or CHAINS in keys)), None
    )


def check_draws(keys: Mapping[str, Any], settings: Settings) -> list[str]:
    """Messages for the user if an inference with these keys would keep few draws.

    Empty if the inference is not a sampler.

    Raises:
        ConfigError: no draws would be kept.
    """
    key = burn_in_key(keys)
    if key is None or settings.steps is None or settings.debug == "profile":
        return []
    steps = settings.steps
    before = keys[key]
    thinning = keys.get(THINNING, 1)
    n_kept = (steps - before) // thinning
    if before >= steps:
        raise ConfigError(
            f"inference.{key}={before}: no draw would be kept in steps={steps}; raise steps, or lower inference.{key}"
        )
    if n_kept == 0:
        raise ConfigError(
            f"inference.thinning={thinning}: no draw would be kept of the {steps - before} steps after "
            f"inference.{key}={before}; raise steps, or lower inference.thinning"
        )
    if n_kept < FEWEST:
        draws = "1 draw" if n_kept == 1 else f"{n_kept} draws"
        return [
            f"steps={steps}: {draws} of each chain would be kept (inference.{key}={before}, thinning={thinning}); "
            f"ESS and R̂ need {FEWEST}"
        ]
    return []
