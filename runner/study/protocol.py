"""Protocol of a score: the settings that must be equal for two scores to be replicates of a cell.

It consists of the metric and the signed config of a run, without the keys that distinguish
replicates, machines and displays.  Kept scores include its hash.
"""

from __future__ import annotations

import contextlib
import copy
import json
from dataclasses import dataclass
from typing import Any

from components.registry import CHOSEN
from runner.catalogue.settings import Values, hash_values, signed_config
from runner.compose.expand import all_parts
from runner.errors import ConfigError

# signed keys that may differ between replicates of a cell or their machines
FREE_KEYS = frozenset(
    {"seed", "replicates", "device", "threads", "side_by_side", "record_every", "plugins"}
)
HASH_LENGTH = 12  # number of hexadecimal digits
PART_LENGTH = 8
UNKNOWN = ""  # hash of scores that were kept without a protocol


@dataclass(frozen=True)
class Protocol:
    """Hash of a protocol and its parts in words: ``steps=30 dataset=uci:3f2a91bc``."""

    digest: str
    parts: str

    def differences(self, other: str) -> str:
        """Parts of another protocol that differ from this one: ``steps=30 (here 5000)``.

        Empty if the parts of the other are unknown.
        """
        ours = _to_parts(self.parts)
        theirs = _to_parts(other)
        if not theirs:
            return ""
        changes = []
        for key in theirs | ours:
            mine = ours.get(key, "none")
            its = theirs.get(key, "none")
            if mine == its:
                continue
            name, _, digest = mine.partition(":")
            is_same_name = bool(digest) and its.partition(":")[0] == name
            changes.append(
                f"settings of {key}={name}" if is_same_name else f"{key}={its} (here {mine})"
            )
        return ", ".join(changes)


def _to_parts(text: str) -> dict[str, str]:
    return {key: value for key, _, value in (word.partition("=") for word in text.split())}


def find_protocol(config: Values, metric: str) -> Protocol:
    """Protocol of a metric, from the resolved config of its run."""
    return protocol_of(protocol_parts(config), metric)


def protocol_of(parts: dict[str, str], metric: str) -> Protocol:
    """Protocol of a metric, from the parts of its run."""
    text = " ".join(
        f"{key}={value}" for key, value in [*parts.items(), ("metric", _to_word(metric))]
    )
    return Protocol(hash_values(text)[:HASH_LENGTH], text)


def protocol_parts(config: Values) -> dict[str, str]:
    """Parts shared by the protocols of all metrics of a run."""
    signed = {k: v for k, v in signed_config(config).items() if k not in FREE_KEYS}
    parts = {}
    for key in sorted(signed):
        value = signed[key]
        if key in CHOSEN and isinstance(value, dict):
            settings = _drop_file_names(key, value)
            parts[key] = f"{value.get('name')}:{hash_values(settings)[:PART_LENGTH]}"
        elif not _is_unset(value):
            parts[key] = _to_word(value)
    return parts


def _is_unset(value: Any) -> bool:
    """True for an empty value, a budget without limits or a decision without a loss."""
    if not isinstance(value, dict):
        return value is None
    return value.get("loss", ...) is None or all(limit is None for limit in value.values())


def _to_word(value: Any) -> str:
    """Format a value without blanks."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return "_".join(text.split())


def _drop_file_names(role: str, values: Values) -> Values:
    """Mapping of a component without the names of files with recorded checksums."""
    values = copy.deepcopy(values)
    with contextlib.suppress(ConfigError):  # a component of a plug-in that is not imported
        for _, declared, part in all_parts(role, values):
            for key, checksum in declared.reads.items():
                if part.get(checksum):
                    part.pop(key, None)
    return values
