"""The config of a smoke run."""

from __future__ import annotations

from components.contracts.requirements import THINNING
from components.registry import CHOSEN
from runner.compose.draws_kept import FEWEST, burn_in_key
from runner.compose.settings import Values


def apply_smoke_overrides(config: Values, explicit: set[str]) -> Values:
    """The config with ``smoke_overrides`` merged in; what the user set on the command line
    stays."""

    def merge(base: Values, over: Values, path: str) -> Values:
        out = dict(base)
        for key, value in over.items():
            here = f"{path}.{key}" if path else key
            # model=smdgp chooses a model, not its keys
            if here in explicit and not isinstance(value, dict):
                continue
            if (
                here in CHOSEN
                and base.get(key) is None
                and isinstance(value, dict)
                and "name" not in value
            ):
                continue  # left out, by the user
            out[key] = (
                merge(out[key], value, here)
                if isinstance(value, dict) and isinstance(out.get(key), dict)
                else value
            )
        return out

    return merge(config, config.get("smoke_overrides") or {}, "")


def shorten_for_smoke(config: Values, steps: int | None, explicit: set[str]) -> Values:
    """A smoke run's config in which a sampler leaves out at most half of its few steps and keeps at
    least four draws.

    An experiment's smoke overrides know its own sampler; this serves the one that a user put in its
    place."""
    inference = dict(config.get("inference") or {})
    key = burn_in_key(inference)
    if key is None or not isinstance(inference[key], int) or steps is None:
        return config
    if f"inference.{key}" not in explicit and inference[key] >= steps:
        inference[key] = steps // 2
    n_kept = max(1, (steps - inference[key]) // FEWEST)
    if f"inference.{THINNING}" not in explicit and isinstance(inference.get(THINNING), int):
        inference[THINNING] = min(inference[THINNING], n_kept)
    return config | {"inference": inference}
