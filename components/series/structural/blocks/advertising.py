"""Transformations of advertising spends: saturation, wear and interactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.roles import ZeroToBelowOne
from components.contracts.structural import Covariates, Facts
from components.errors import ConfigMismatchError
from components.series.maths.advertising import effectiveness, saturate
from components.series.structural.blocks.selection import SelectionBlock

Share = ZeroToBelowOne


def name_column(channel: str, half: float | None, limit: float) -> str:
    return channel + (f"_half_{half:g}" if half else "") + (f"_limit_{limit:g}" if limit else "")


class AdvertisingBlock(SelectionBlock):
    """Block with columns of spends, raw or transformed.

    e_t u_t,  and for each half-saturation h of a channel  e_t u_t^p/(h^p + u_t^p);  products of two
    channels' first columns for each interaction.  e_t is ``effectiveness``.  Several h of a channel
    give separate columns, among which spike and slab select."""

    inputs: list[str] | None
    saturation: dict[str, list[PositiveFloat]]
    power: PositiveFloat
    wear_in: Share
    wear_out: Share
    recovery: Share
    interactions: list[Annotated[list[str], Field(min_length=2, max_length=2)]]

    def _refuse_unknown(
        self, channels: list[str], limits: Mapping[str, list[float]], where: str
    ) -> None:
        for key, used in (
            ("saturation", list(self.saturation)),
            ("vidale_wolfe", list(limits)),
            ("interactions", [name for pair in self.interactions for name in pair]),
        ):
            for name in used:
                if name not in channels:
                    raise ConfigMismatchError(
                        f"{where}.{key}: {name} is not among its channels, {', '.join(channels)}"
                    )

    def inflows(
        self, facts: Facts, limits: Mapping[str, list[float]]
    ) -> tuple[list[str], Callable[[Covariates], Tensor], list[float]]:
        """Names of c columns, the columns [n, c], and their limits κ (0 means no limit). A channel
        has a column for each of its limits.

        Raises ConfigMismatchError if a key does not name a channel of the block."""
        places = facts.column_indices("inputs", self.inputs, facts.u_names, "input")
        channels = [facts.u_names[j] for j in places]
        self._refuse_unknown(channels, limits, facts.where)
        plain: list[float | None] = [None]
        halves = [
            (i, h, k)
            for i, name in enumerate(channels)
            for h in [*self.saturation.get(name, [])] or plain
            for k in limits.get(name) or [0.0]
        ]
        names = [name_column(channels[i], h, k) for i, h, k in halves]
        first = {name: [i for i, *_ in halves].index(j) for j, name in enumerate(channels)}
        names += ["_x_".join(pair) for pair in self.interactions]

        def columns(covariates: Covariates) -> Tensor:
            assert covariates.u is not None
            u = covariates.u[:, places]
            e = effectiveness(u, self.wear_in, self.wear_out, self.recovery)
            flows = [
                e[:, i] * (u[:, i] if h is None else saturate(u[:, i], h, self.power))
                for i, h, _ in halves
            ]
            flows += [flows[first[a]] * flows[first[b]] for a, b in self.interactions]
            return torch.stack(flows, 1)

        return names, columns, [k for *_, k in halves] + [0.0] * len(self.interactions)
