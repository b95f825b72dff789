"""Frozen parameters of a network, selected by name."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from torch import nn

from components.errors import ConfigMismatchError
from components.models.networks.flat_network import count_frozen


def match_names(patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Names of parameters that match a pattern, or belong to a layer that does.

    Raises:
        ConfigMismatchError: a pattern does not match, or all parameters match.
    """
    hits = {p: [*fnmatch.filter(names, p), *fnmatch.filter(names, f"{p}.*")] for p in patterns}
    frozen = {name for some in hits.values() for name in some}
    if len(frozen) == len(names) or not all(hits.values()):
        raise ConfigMismatchError(
            f"model.freeze={list(patterns)}: every pattern must match a parameter, but some "
            f"parameter must match none (to freeze all, use inference=fixed); the parameters are "
            f"{', '.join(names[:5])}, … …"
        )
    return [name for name in names if name in frozen]


def to_buffers(network: nn.Module, patterns: Sequence[str]) -> dict[str, str]:
    """Convert parameters that match patterns to buffers, and count them.

    Raises:
        ConfigMismatchError: see ``match_names``.
    """
    parameters = dict(network.named_parameters())
    frozen = match_names(patterns, list(parameters))
    for name in frozen:
        path, _, last = name.rpartition(".")
        layer = network.get_submodule(path)
        del layer._parameters[last]
        layer.register_buffer(last, parameters[name].detach())
    pieces = [p.numel() for p in parameters.values()]
    return count_frozen(pieces, [name in frozen for name in parameters])
