"""Draws from a file, made by another program."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import NonNegativeInt
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.costs.counts import count
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.posteriors.draws import Draws
from components.posteriors.inference_data import FEWEST_DRAWS, UNCONSTRAINED, group_variables
from components.problems.density import Density
from components.registry import register


@dataclass(frozen=True)
class NamedDraws(Draws):
    """Draws of the named parameters; draws of θ are not known and set to NaN."""

    named: Tensor | None = None  # [C, N, P']

    @property
    def values(self) -> Tensor:  # type: ignore[override]
        assert self.named is not None
        return self.named


@dataclass
class GivenState:
    """The draws in the file."""

    draws: Draws = not_checkpointed()


@register("inference", "given_draws")
class GivenDraws(Inference[LogJoint, Density, None, GivenState]):
    """Draws from a file, scored like the draws of a method; their costs are stated, not counted.

    The file is from ArviZ (group ``posterior`` with the named parameters, or group
    ``unconstrained_posterior`` with θ [P] as its only variable, of the same name) or a NumPy array
    [chain, draw, parameter].

    Raises:
        ConfigMismatchError: the file cannot be read, has other parameters, or contains values that
        are not finite.

    Source: Kumar et al. (2019), on the groups of the file.
    """

    requires = Requirements(kinds={"density"}, capabilities={LogJoint})
    folds_replicates = frozenset()
    max_useful_steps = 1
    reads = {"file": "sha256"}
    file: str | None
    sha256: str | None
    gradients: NonNegativeInt
    densities: NonNegativeInt

    def init(self, model: LogJoint, problem: Density, rng: Rng) -> GivenState:
        start = model.sample_prior(1, rng.init)
        return GivenState(read_draws(Path(self.file or ""), model, start))

    def step(self, state: GivenState, batch: None, rng: Rng) -> tuple[GivenState, Info]:
        count(densities=self.densities, gradients=self.gradients)
        return state, {"draws": state.draws.n_draws}

    def posterior(self, state: GivenState) -> Draws:
        return state.draws


def read_draws(path: Path, model: LogJoint, like: Tensor) -> Draws:
    """Read draws in the order of the model's parameters, with the dtype of ``like`` [1, P].

    Raises:
        ConfigMismatchError: as in ``GivenDraws``; the message names the fix.
    """
    names = model.names
    theta = None
    stats: dict[str, Any] = {}
    try:
        if path.suffix == ".npy":
            values = np.load(path)
        else:
            theta, values, stats = _read_groups(path, names)
        if values.ndim != 3 or values.shape[-1] != len(names) or values.shape[1] < FEWEST_DRAWS:
            raise ValueError(
                f"the shape is {list(values.shape)}, not [chain, draw, {len(names)}] with "
                f"{FEWEST_DRAWS} draws or more"
            )
        if not np.isfinite(values).all():
            raise ValueError("some values are not finite")
    except (OSError, ValueError) as error:
        raise ConfigMismatchError(
            f"{path}: {error}; use an ArviZ file or a .npy array of {', '.join(names[:9])}"
            f"{', …' if len(names) > 9 else ''} (runner arena show SUITE --problems)"
        ) from None
    if theta is None:
        probe = torch.linspace(-1, 1, like.shape[1]).to(like)[None]
        is_plain = torch.equal(model.constrain(probe), probe)
        theta = values if is_plain else np.full((*values.shape[:2], like.shape[1]), np.nan)
    named, draws = (torch.from_numpy(np.array(x)).to(like) for x in (values, theta))
    kept = {name: torch.from_numpy(np.array(value)) for name, value in stats.items()}
    log_weights = kept.pop("log_weight", None)
    return NamedDraws(draws, draws[:, 0], names, model, kept, log_weights=log_weights, named=named)


def _read_groups(path: Path, names: list[str]) -> tuple[Any, Any, dict[str, Any]]:
    """θ [C, N, P] or None, the parameters [C, N, P'], and statistics [C, N] of ArviZ's file."""
    from xarray import Dataset, open_datatree

    with open_datatree(path) as tree:
        groups = {name: group.to_dataset() for name, group in tree.children.items()}
        columns: dict[int, Any] = {}
        for name, (axes, places) in group_variables(names, len(names)).items():
            group = groups.get("posterior", Dataset())
            if name not in group:
                raise ValueError(f"posterior lacks {name}; it has {', '.join(map(str, group))}")
            array = group[name]
            labels = [list(array[axis].values) for axis in array.dims[2:]]
            wanted = list(axes.values())
            # ArviZ numbers unnamed coordinates from 0
            if labels not in (wanted, [list(range(len(axis))) for axis in wanted]):
                raise ValueError(f"{name} has the coordinates {labels}, not {wanted}")
            flat = array.values.reshape(*array.shape[:2], -1)
            columns |= {place: flat[..., i] for i, place in enumerate(places)}
        values = np.stack([columns[i] for i in range(len(names))], -1)
        theta = groups[UNCONSTRAINED][UNCONSTRAINED].values if UNCONSTRAINED in groups else None
        stats = groups.get("sample_stats", Dataset()).data_vars.items()
        return theta, values, {str(k): v.values for k, v in stats if v.ndim == 2}
