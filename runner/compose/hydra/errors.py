"""Errors of Hydra and OmegaConf in the user's terms.

A message gives the key, its value and the nearest existing one.
"""

from __future__ import annotations

import re

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from components.registry import CHOSEN, ROLES
from runner import CONF
from runner.compose.hydra.command_line import (
    N_JOBS_KEY,
    misunderstood_message,
    not_installed,
    override_values,
    wrong_jobs_message,
)
from runner.compose.hydra.part_overrides import open_parts
from runner.compose.hydra.unknown_keys import unknown_key_message
from runner.compose.overrides import VERSION_BASE, search_path
from runner.compose.resolve import explain_misplaced
from runner.disk import conf_folders
from runner.disk.yaml_comments import read_file
from runner.errors import ConfigError, nearest


def parse_overrides(argv: list[str]) -> list[Override]:
    """The overrides among the words of a command line that are well written."""
    parser = OverridesParser.create()
    overrides = []
    for text in argv:
        if text.startswith("-") or not ("=" in text or text.startswith("~")):
            continue
        try:
            overrides.append(parser.parse_override(text))
        except HydraException:
            continue
    return overrides


def _options(group: str) -> list[str]:
    loader = GlobalHydra.instance().config_loader()
    return list(loader.get_group_options(group))


def wrong_launcher_message(argv: list[str]) -> str | None:
    """Error message for a sweep's number of parallel jobs; joblib would raise a traceback."""
    jobs = [o for o in parse_overrides(argv) if o.key_or_group == N_JOBS_KEY]
    return wrong_jobs_message(jobs[-1].value()) if jobs else None


def explain(error: Exception, argv: list[str]) -> str:
    """One or two lines for a composition that failed."""
    for text in argv:
        key, _, value = text.partition("=")
        role = key.lstrip("+")
        if role in ROLES and role not in CHOSEN and value:
            return explain_misplaced(role, value)
    first = next(iter(str(error).strip().splitlines()), type(error).__name__)
    if isinstance(error, OverrideParseException) or "token recognition error" in first:
        return _not_an_override(error, first, argv)
    GlobalHydra.instance().clear()
    overrides = parse_overrides(argv)
    keys = [key.path for key in read_file(CONF / "config.yaml")[0] if "." not in key.path]
    try:
        return (
            misunderstood_message(argv, overrides, keys)
            or _wrong_in_composition(overrides)
            or _reword_error(first, overrides)
        )
    except ConfigError as wrong:
        return str(wrong)
    except ValueError:  # Hydra's own error, without an explanation of ours
        return first


def _not_an_override(error: Exception, first: str, argv: list[str]) -> str:
    override = error.override if isinstance(error, OverrideParseException) else None
    wrong = override or next(
        (t for t in argv if "=" in t and not parse_overrides([t])), "an override"
    )
    return f"{wrong}: not an override ({first.rstrip('.')}); quote values with special characters: 'key=\"a b\"'"


def _reword_error(first: str, overrides: list[Override]) -> str:
    """Composition error of Hydra or OmegaConf, reworded; used if nothing else explains it."""
    missing_match = re.search(r"Could not find '([\w/]+)/([\w.-]+)'", first)
    if missing_match:
        group, name = missing_match.groups()
        experiment = next(
            (str(o.value()) for o in overrides if o.key_or_group == "experiment"), None
        )
        origin = (
            ""
            if any(str(o.value()) == name for o in overrides)
            else f", which experiment={experiment} asks for"
        )
        return f"{group}={name}{origin}: no such {group.split('/')[-1]}{nearest(name, conf_folders.names(group))}"
    preset_match = re.search(r"In '(hydra/launcher)/([\w-]+)': Could not load", first)
    if preset_match and (complaint := not_installed(*preset_match.groups())):
        return complaint
    if "does not support sweep type" in first:
        searched = next((o.key_or_group for o in overrides if o.is_sweep_override()), "a key")
        return f"{searched}: an interval is searched, not run through; add hydra/sweeper=optuna, or list values"
    match = re.match(r"Could not override '(.+?)'", first)
    return f"{match.group(1)}: unknown key" if match else first


def _wrong_in_composition(overrides: list[Override]) -> str | None:
    """The first override of a group, or of a key, that does not exist."""
    with initialize_config_dir(str(CONF), **VERSION_BASE):
        groups = []
        values = []
        for override in (o for o in overrides if not o.is_delete()):
            key = override.key_or_group
            if options := _options(key):
                if complaint := _wrong_choice(override, [*options, *conf_folders.names(key)]):
                    return complaint
                groups.append(override)
            elif "/" in key and not key.startswith("hydra"):
                return f"{key}: no such group{nearest(key, [*CHOSEN, 'experiment'])}"
            else:
                values.append(override)
        experiment = next((o for o in overrides if o.key_or_group == "experiment"), None)
        if experiment and not experiment.is_add():
            return f"experiment={experiment.value()}: write it with a plus sign, +experiment={experiment.value()}"
        cfg = _compose_choices(groups)
        if cfg is None:
            return None
        complaints = (_wrong_value(override, cfg, groups) for override in values)
        return next(filter(None, complaints), None)


def _compose_choices(groups: list[Override]) -> DictConfig | None:
    """The config with the groups that were chosen; None if it cannot be composed."""
    try:
        plain = [o.input_line for o in groups if o.input_line and not o.is_sweep_override()]
        cfg = compose("config", overrides=[*search_path(), *plain], return_hydra_config=True)
    except (HydraException, OmegaConfBaseException):
        return None
    OmegaConf.set_struct(cfg, True)
    return cfg


def _wrong_choice(override: Override, options: list[str]) -> str | None:
    """The complaint about the first value of an override of a group that does not exist."""
    group = override.key_or_group
    for choice in override_values(override):
        if not isinstance(choice, str) or choice in options:
            continue
        if ".." in choice or not conf_folders.find(group, choice):
            return (
                not_installed(group, choice)
                or f"{group}={choice}: no such {group.split('/')[-1]}{nearest(choice, options)}"
            )
    return None


def _key_of_basic_plugin(key: str, groups: list[Override]) -> str | None:
    """The complaint about a key of a launcher or a sweeper if none was chosen."""
    chosen = {o.key_or_group for o in groups}
    for kind in ("launcher", "sweeper"):
        if key.startswith(f"hydra.{kind}.") and f"hydra/{kind}" not in chosen:
            return f"{key}: the basic {kind} has no such key; choose one with hydra/{kind}={_options(f'hydra/{kind}')}"
    return None


def _wrong_value(override: Override, cfg: DictConfig, groups: list[Override]) -> str | None:
    """The complaint about an override of a key; a config that holds it is changed by it."""
    key = override.key_or_group
    if key.startswith("hydra.searchpath"):
        return None
    if override.is_add():
        is_present = OmegaConf.select(cfg, key) is not None and not override.is_force_add()
        return (
            f"+{key}: is there already; write {key}=…"
            if is_present and not key.startswith("hydra")
            else None
        )
    if complaint := _key_of_basic_plugin(key, groups):
        return complaint
    role, *keys = key.split(".")
    if role in CHOSEN:
        if keys and cfg.get(role) is None:
            return f"{key}: no {role} is chosen; choose one too, {role}=… (runner list {role} names them)"
        if len(keys) > 1 and open_parts(cfg[role], keys) is not None:
            return None  # key of a part: checked where its class is known
    value = override_values(override)[0]
    complaint = unknown_key_message(key, value, cfg)
    # the name of a part; keys may follow
    if complaint is None and isinstance(value, str):
        try:
            OmegaConf.update(cfg, key, value)
        except OmegaConfBaseException as error:
            return f"{override.input_line}: {str(error).splitlines()[0]}"
    return complaint
