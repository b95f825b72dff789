"""Full configs: components with all their keys, and the checksums of the files that they name."""

from __future__ import annotations

import json
from typing import Any

from components.registry import CHOSEN
from runner.compose.named_files import note_checksums, refuse_untrusted
from runner.compose.numbers import refuse_large
from runner.compose.parts import expand_component
from runner.compose.settings import Settings, Values
from runner.compose.smoke import shorten_for_smoke


def chosen_components(config: Values) -> list[tuple[str, Any]]:
    """Roles that a component is chosen for, and its mapping."""
    return [(role, config[role]) for role in CHOSEN if config.get(role) is not None]


def fill_in(config: Values, settings: Settings, smoke_keys: set[str] | None) -> Values:
    """A config with its components in full, and the checksums of the files that they name.

    Args:
        config: the config; the mappings of its components may lack the keys of parts.
        settings: its run-level keys.
        smoke_keys: keys that the user has set, if it is the config of a smoke run.

    Raises:
        ConfigError: a component does not exist, or names code or a file that is refused.
    """
    config = config | {
        role: expand_component(role, own, role) for role, own in chosen_components(config)
    }
    refuse_large(config)
    if smoke_keys is not None:
        config = shorten_for_smoke(config, settings.steps, smoke_keys)
    config = json.loads(json.dumps(config))
    for role, values in chosen_components(config):
        refuse_untrusted(role, values, settings.plugins)
        note_checksums(role, values)
    return config
