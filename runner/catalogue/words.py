"""Words of a command line: overrides, sweeps, and errors in them.

A message gives the key, its value and the nearest existing name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, OverrideParseException

from components.registry import CHOSEN
from runner.disk import conf_folders
from runner.errors import first_line, nearest

N_JOBS_KEY = "hydra.launcher.n_jobs"
SINGLE_CHOICE_GROUPS = (*CHOSEN, "experiment")  # a run has at most one of each
SERVES_SWEEP = re.compile(r"\+*hydra(/(launcher|sweeper)=|\.(launcher|sweeper)\.)")
# Extras with the launchers that are plug-ins of Hydra, and presets based on them.
EXTRA_BY_LAUNCHER = dict.fromkeys(
    ("joblib", "slurm", "slurm_local", "submitit_slurm", "submitit_local"), "launchers"
) | dict.fromkeys(("ray", "ray_aws"), "ray")


def parse_overrides(argv: list[str]) -> list[Override]:
    """Well-formed overrides among the words of a command line."""
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


def explicit_keys(overrides: list[str]) -> set[str]:
    """Key ``a.b`` of every override ``a.b=…``."""
    return {
        o.split("=", 1)[0].lstrip("+~").split("@")[0].replace("/", ".")
        for o in overrides
        if "=" in o
    }


def is_sweep(argv: Iterable[str]) -> bool:
    """True if a command line requests more than one run."""
    return any(word in ("-m", "--multirun", "hydra.mode=MULTIRUN") for word in argv)


def sweep_required_message(argv: list[str]) -> str | None:
    """Error message for a launcher or a sweeper without -m, or empty."""
    word = next(filter(SERVES_SWEEP.match, argv), None)
    return word and f"{word}: applies to sweeps only; add -m for a sweep, or remove it"


def wrong_jobs_message(value: object) -> str | None:
    """Error message for a number of parallel jobs that joblib cannot use."""
    if isinstance(value, int) and not isinstance(value, bool) and value != 0:
        return None
    return f"{N_JOBS_KEY}={value}: must be the number of parallel jobs, 1 or more, or -1 for one per core"


def explain(error: Exception, argv: list[str]) -> str:
    """Explain a failed composition in one or two lines."""
    if keyless := next((word for word in argv if word.startswith(("=", "@"))), None):
        return f"{keyless}: the key before the equals sign is missing; write key=value"
    first = first_line(error)
    if isinstance(error, OverrideParseException) or "token recognition error" in first:
        override = error.override if isinstance(error, OverrideParseException) else None
        wrong = override or next(
            (t for t in argv if "=" in t and not parse_overrides([t])), "an override"
        )
        return f"{wrong}: not an override ({first.rstrip('.')}); quote values with special characters: 'key=\"a b\"'"
    return _reword_error(first, parse_overrides(argv))


def _reword_error(first: str, overrides: list[Override]) -> str:
    """Reword a known composition error of Hydra."""
    given = {override.key_or_group: str(override.value()) for override in overrides}
    choice = re.search(r"Could not find '(hydra/\w+|\w+)/(.*)'", first)
    if choice := choice or re.search(r"In '(hydra/launcher)/([\w-]+)': Could not load", first):
        group, name = choice.groups()
        if group == "hydra/launcher" and name in EXTRA_BY_LAUNCHER:
            extra = EXTRA_BY_LAUNCHER[name]
            return f"{group}={name}: not installed; pip install 'bayes-runner[{extra}]'"
        is_given = name in given.values()
        origin = "" if is_given else f" (from experiment={given.get('experiment')})"
        kind = group.rpartition("/")[2]
        return f"{group}={name}{origin}: no such {kind}{nearest(name, conf_folders.names(group))}"
    if "does not support sweep type" in first:
        searched = next((o.key_or_group for o in overrides if o.is_sweep_override()), "a key")
        return f"{searched}: an interval needs a search; add hydra/sweeper=optuna, or list values"
    if match := re.match(r"Could not override '(.+?)'", first):
        key = match[1]
        if key in SINGLE_CHOICE_GROUPS:
            return f"{key}={given[key]}: not in the config; to add it write +{key}={given[key]}"
    return first
