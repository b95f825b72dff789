"""Densities whose fields are those of their data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import torch


@dataclass(frozen=True)
class FromData:
    """A subclass adds the fields: lists of the data become tensors, numbers stay."""

    @classmethod
    def of(cls, data: dict[str, Any], dtype: torch.dtype, device: torch.device) -> Self:
        values = [data[field.name] for field in fields(cls)]
        return cls(
            *(
                torch.tensor(value, dtype=dtype, device=device)
                if isinstance(value, list)
                else value
                for value in values
            )
        )
