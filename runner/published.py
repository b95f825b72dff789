"""Numbers printed in papers: ``conf/published/*.yaml``, each table with where it is printed, its data, its protocol."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from runner import CONF
from runner.mistakes import ConfigError, nearest

_PRINTED = re.compile(r"^(-?\d+(?:\.(\d+))?)(?:\((\d+(?:\.\d+)?)\))?$")


@dataclass(frozen=True)
class Number:
    """``0.15(0.1)`` as printed: mean, standard error (None where none is printed), half a unit of the last digit."""

    text: str
    mean: float
    se: float | None
    rounding: float

    @classmethod
    def parse(cls, text: str) -> Number:
        """Reads ``mean`` or ``mean(standard error)``.

        Raises:
            ValueError: the text is neither.
        """
        found = _PRINTED.match(text)
        if found is None:
            raise ValueError(f"{text!r} is not a number printed as mean(standard error)")
        mean, decimals, se = found.group(1), len(found.group(2) or ""), found.group(3)
        return cls(text, float(mean), None if se is None else float(se), 0.5 * 10.0**-decimals)

    @property
    def uncertainty(self) -> float:
        """The SE, or half a unit of the mean's last digit where that is larger: ``0.89(0.00)`` is not known exactly."""
        return max(self.se or 0.0, self.rounding)


class Published(BaseModel):
    """One printed table."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    source: str
    where: str
    caption: str
    metric: str
    better: Literal["lower", "higher"]
    data: str  # a result on data of another name is shown beside, never compared
    runs: int | None
    spread: str
    rows: str = "model"  # what a row is of a run: a role, or a dotted key of the config
    columns: str | dict[str, str]  # the same for a column; or {column as printed: metric of one run}
    protocol: str
    bold: str | None = None
    note: str | None = None
    not_comparable: str | None = None  # why no result of ours can be compared, whatever its data
    values: dict[str, dict[str, Number]]  # row -> column -> number

    @field_validator("values", mode="before")
    @classmethod
    def _parsed(cls, values: dict[str, dict[Any, Any]]) -> dict[str, dict[str, Number]]:
        return {m: {str(c): Number.parse(str(v)) for c, v in row.items()} for m, row in values.items()}

    def number(self, row: object, column: object) -> Number | None:
        """What is printed in a row and a column (None: nothing)."""
        return self.values.get(str(row), {}).get(str(column))

    def beside(self, config: dict[str, Any]) -> dict[str, str]:
        """What is printed for one run, by metric, given the run's resolved config."""
        row = _of_run(config, self.rows)
        if isinstance(self.columns, dict):
            found = {metric: self.number(row, column) for column, metric in self.columns.items()}
        else:
            found = {self.metric: self.number(row, _of_run(config, self.columns))}
        return {metric: number.text for metric, number in found.items() if number is not None}


def _of_run(config: dict[str, Any], key: str) -> Any:
    """The value of a dotted key, the name where the key is a role; None: the config has no such key."""
    value: Any = config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value.get("name") if isinstance(value, dict) else value


def load_published(name: str, folder: Path = CONF / "published") -> Published:
    """The table ``conf/published/<name>.yaml``.

    Raises:
        ConfigError: there is none, or it does not read as one.
    """
    path = folder / f"{name}.yaml"
    if not path.is_file():
        raise ConfigError(f"published={name}: no such table{nearest(name, (p.stem for p in folder.glob('*.yaml')))}")
    try:
        return Published(**yaml.safe_load(path.read_text(encoding="utf-8")))
    except (ValidationError, yaml.YAMLError, TypeError) as error:
        raise ConfigError(f"conf/published/{name}.yaml: {str(error).splitlines()[0]}") from None


def shown(mean: float, se: float | None, decimals: int = 2) -> str:
    """``0.31(0.02)``, as the papers print it; more decimals of the SE where it would round to nothing."""
    if not math.isfinite(mean):
        return "not finite"
    if se is None or not math.isfinite(se):
        return f"{mean:.{decimals}f}"
    return f"{mean:.{decimals}f}({se:.{decimals}f})"
