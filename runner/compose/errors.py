"""What Hydra and OmegaConf complain of, in the user's terms: the key, its value, the nearest that exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from components.registry import CHOSEN, ROLES
from runner import CONF
from runner.compose.overrides import open_parts
from runner.compose.resolve import misplaced
from runner.mistakes import nearest


def _parsed(argv: list[str]) -> list[Override]:
    parser = OverridesParser.create()
    found = []
    for text in argv:
        if text.startswith("-") or "=" not in text:
            continue
        try:
            found.append(parser.parse_override(text))
        except HydraException:
            continue
    return found


def _directories(argv: list[str]) -> list[str]:
    """Overrides that add the user's config folder to the search path."""
    for i, text in enumerate(argv):
        if text in ("--config-dir", "-cd") and i + 1 < len(argv):
            return [f"hydra.searchpath=[file://{argv[i + 1]}]"]
        if text.startswith("--config-dir="):
            return [f"hydra.searchpath=[file://{text.split('=', 1)[1]}]"]
    return []


def _options(group: str) -> list[str]:
    loader = GlobalHydra.instance().config_loader()
    return list(loader.get_group_options(group))


def _wrong_key(path: str, cfg: DictConfig) -> str | None:
    """The complaint about the first part of a dotted key that the config lacks."""
    node: Any = cfg
    parts = path.split(".")
    for i, part in enumerate(parts):
        if not isinstance(node, DictConfig) or part not in node:
            known = [str(k) for k in node] if isinstance(node, DictConfig) else []
            if i == 0:
                known += [*CHOSEN, "experiment"]  # groups, of which the config holds only those that were chosen
            prefix = ".".join(parts[:i])
            matches = nearest(part, known)
            if ", did you mean " in matches and prefix:
                matches = matches.replace("did you mean ", f"did you mean {prefix}.")
            return f"{'.'.join(parts[: i + 1])}: unknown key{matches}"
        node = node[part]
    return None


def _choices(override: Override) -> list[Any]:
    """The values that an override gives in turn; one, where it is no sweep."""
    value = override.value()
    return list(value.list) if isinstance(value, ChoiceSweep) else [value]


def late_choice(argv: list[str]) -> str | None:
    """The complaint when a sweep over experiments contains one that picks a launcher or a sweeper: the sweep has begun
    by then, and Hydra would ignore it silently."""
    swept = [o for o in _parsed(argv) if o.key_or_group == "experiment" and o.is_sweep_override()]
    if not swept:
        return None
    folders = [CONF, *(Path(d.split("file://")[1].rstrip("]")) for d in _directories(argv))]
    for name in _choices(swept[0]):
        for path in (folder / "experiment" / f"{name}.yaml" for folder in folders):
            found = re.search(r"override /?hydra/(launcher|sweeper)", path.read_text()) if path.exists() else None
            if found:
                kind = found.group(1)
                return f"hydra/{kind}: experiment={name} chooses it too late for a sweep over experiments; add hydra/{kind}=…"
    return None


def explain(error: Exception, argv: list[str]) -> str:
    """One or two lines for a composition that failed."""
    for text in argv:
        role, _, value = text.partition("=")
        if role in CHOSEN and value in ("null", "none", ""):
            article = "an" if role[0] in "ai" else "a"
            return f"{text}: choose {article} {role} by name, or leave it out with ~{role}"
        if role.lstrip("+") in ROLES and role.lstrip("+") not in CHOSEN and value:
            return misplaced(role.lstrip("+"), value)
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, OverrideParseException) or "token recognition error" in first:
        told = error.override if isinstance(error, OverrideParseException) else None
        wrong = told or next((t for t in argv if "=" in t and not _parsed([t])), "an override")
        return f"{wrong}: not an override ({first.rstrip('.')}); quote values with special characters: 'key=\"a b\"'"
    GlobalHydra.instance().clear()
    overrides, extra = _parsed(argv), _directories(argv)
    with initialize_config_dir(str(CONF), version_base="1.3"):
        groups, values = [], []
        for override in overrides:
            key = override.key_or_group
            if _options(key):
                options = _options(key)
                for choice in _choices(override):
                    if isinstance(choice, str) and choice not in options and not extra:
                        return f"{key}={choice}: no such {key.split('/')[-1]}{nearest(choice, options)}"
                groups.append(override)
            elif "/" in key and not key.startswith("hydra"):
                return f"{key}: no such group{nearest(key, [*CHOSEN, 'experiment'])}"
            else:
                values.append(override)
        experiment = next((o for o in overrides if o.key_or_group == "experiment"), None)
        if experiment and not experiment.is_add():
            return f"experiment={experiment.value()}: write it with a plus sign, +experiment={experiment.value()}"
        try:
            plain = [o.input_line for o in groups if o.input_line and not o.is_sweep_override()]
            cfg = compose("config", overrides=[*plain, *extra], return_hydra_config=True)
        except (HydraException, OmegaConfBaseException):
            return first
        OmegaConf.set_struct(cfg, True)
        for override in values:
            if override.is_add() or override.key_or_group.startswith("hydra.searchpath"):
                continue
            key = override.key_or_group
            for kind in ("launcher", "sweeper"):
                if key.startswith(f"hydra.{kind}.") and not any(o.key_or_group == f"hydra/{kind}" for o in groups):
                    return f"{key}: the basic {kind} has no such key; choose one with hydra/{kind}={_options(f'hydra/{kind}')}"
            role, *keys = key.split(".")
            if role in CHOSEN and isinstance(cfg.get(role), DictConfig) and open_parts(cfg[role], role, keys):
                continue  # of a part: checked where its class is known
            complaint = _wrong_key(key, cfg)
            if complaint:
                return complaint
            if isinstance(_choices(override)[0], str):  # the name of a part, of which keys may follow
                OmegaConf.update(cfg, key, _choices(override)[0])
    return first
