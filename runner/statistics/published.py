"""Numbers printed in papers: ``conf/published/*.yaml``.

Each table states its location in the paper, its data and its protocol.

Parentheses after a mean contain a standard error, a standard deviation or an interquartile range
over runs, as specified by the table's ``spread``; verdicts use the standard error derived from it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from components.metrics.names import ScoreDirection
from runner.disk import conf_folders
from runner.disk.read_yaml import load_untrusted, value_at
from runner.errors import ConfigError, display_path, first_mistake, nearest

_PRINTED_NUMBER_PATTERN = re.compile(r"^(-?\d+(?:\.(\d+))?)(?:\((\d+(?:\.\d+)?)\))?$")
Spread = Literal["se", "sd", "iqr"]
SPREADS: dict[Spread, str] = {
    "se": "standard errors",
    "sd": "standard deviations",
    "iqr": "interquartile ranges",
}
IQR_IN_SD = 2 * NormalDist().inv_cdf(0.75)  # 1.349 standard deviations, of a Gaussian


@dataclass(frozen=True)
class PublishedNumber:
    """A printed number such as ``0.15(0.1)``: mean, spread over runs (None if not printed), and
    half a unit of the last digit.
    """

    text: str
    mean: float
    spread: float | None
    rounding: float
    se: float | None  # the standard error of the mean; None where no spread is printed
    runs: int | None = None  # number behind the mean; None if not stated
    # for one run: the distance within which our mean agrees, for any values of the others
    within: float | None = None

    @classmethod
    def parse(
        cls, text: str, in_se: float = 1.0, runs: int | None = None, within: float | None = None
    ) -> PublishedNumber:
        """Parse ``mean`` or ``mean(spread)``; ``in_se`` is the number of standard errors in a unit
        of the spread.

        Raises:
            ValueError: the text has neither form.
        """
        match = _PRINTED_NUMBER_PATTERN.match(text)
        if match is None:
            raise ValueError(f"{text!r} is not a number printed as mean(spread)")
        mean = match.group(1)
        decimals = len(match.group(2) or "")
        spread = None if match.group(3) is None else float(match.group(3))
        return cls(
            text,
            float(mean),
            spread,
            0.5 * 10.0**-decimals,
            None if spread is None else spread * in_se,
            runs,
            within,
        )

    @property
    def one_run(self) -> bool:
        """True if the number comes from a single run."""
        return self.runs == 1

    @property
    def uncertainty(self) -> float:
        """The SE, or half a unit of the mean's last digit if that is larger, because ``0.89(0.00)``
        is not exact.
        """
        return max(self.se or 0.0, self.rounding)


class Published(BaseModel):
    """One printed table."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    source: str
    where: str
    caption: str
    metric: str
    # of scores that have no direction of their own (components.metrics.names)
    better: ScoreDirection | None = None
    # a result on other data appears next to it without a comparison; several: a column each
    data: str | list[str]
    runs: PositiveInt | None  # number behind the means and the spreads; null: not stated
    spread: Spread | None  # meaning of the number in parentheses; null: not printed
    rows: str = "model"  # key of a run that identifies a row: a role, or a dotted key of the config
    # the same for a column; or {column as printed: metric of one run}
    columns: str | dict[str, str]
    protocol: str
    bold: str | None = None
    note: str | None = None
    # for numbers of one run: a difference of our mean to ignore, in the metric's units
    within: PositiveFloat | None = None
    not_comparable: str | None = None  # why no result of ours is comparable, on any data
    # another table of conf/published that prints the same numbers: scores next to it count here
    reprinted_in: str | None = None
    values: dict[str, dict[str, PublishedNumber]]  # row -> column -> number

    @field_validator("values", mode="before")
    @classmethod
    def _parse_values(
        cls, values: dict[str, dict[Any, Any]], info: ValidationInfo
    ) -> dict[str, dict[str, PublishedNumber]]:
        spread = info.data.get("spread")
        runs = info.data.get("runs")
        in_se = 1.0
        if spread in ("sd", "iqr") and runs:
            in_se = (1 if spread == "sd" else 1 / IQR_IN_SD) / math.sqrt(runs)
        return {
            m: {
                str(c): PublishedNumber.parse(str(v), in_se, runs, info.data.get("within"))
                for c, v in row.items()
            }
            for m, row in values.items()
        }

    @model_validator(mode="after")
    def _check_references(self) -> Published:
        if self.within is not None and self.runs != 1:
            raise ValueError(
                f"within: {self.within} requires numbers of one run; write runs: 1, or remove it"
            )
        printed = {n.spread is not None for row in self.values.values() for n in row.values()}
        if self.spread in ("sd", "iqr") and self.runs is None:
            raise ValueError(
                f"spread: {self.spread} describes a single run; a standard error requires the number of runs, set runs"
            )
        if printed == {True} and self.spread is None:
            raise ValueError(
                "spread: missing for the numbers printed in parentheses; write se, sd or iqr"
            )
        if printed == {False} and self.spread is not None:
            raise ValueError(
                f"spread: {self.spread}, but nothing is printed in parentheses; write null"
            )
        return self

    @property
    def parentheses(self) -> str:
        """Meaning of the number in parentheses, in words; empty if there are no parentheses."""
        if self.spread is None:
            return ""
        over = f" of {self.runs} runs" if self.runs else ""
        verdict_note = (
            ""
            if self.spread == "se"
            else ", from which verdicts take the standard error of the mean"
        )
        return f"{SPREADS[self.spread]}{over}{verdict_note}"

    @property
    def data_label(self) -> str:
        """Description of the data."""
        return self.data if isinstance(self.data, str) else " and ".join(self.data)

    def is_comparable_on(self, data: str) -> bool:
        """True if results on data with this name are comparable with the table."""
        return data == self.data if isinstance(self.data, str) else data in self.data

    def number(self, row: object, column: object) -> PublishedNumber | None:
        """Printed number in a row and a column, or None."""
        return self.values.get(str(row), {}).get(str(column))

    def numbers_for_run(self, config: dict[str, Any]) -> dict[str, str]:
        """Printed numbers for one run, by metric, given the run's resolved config."""
        row = _config_value(config, self.rows)
        if isinstance(self.columns, dict):
            numbers = {metric: self.number(row, column) for column, metric in self.columns.items()}
        else:
            numbers = {self.metric: self.number(row, _config_value(config, self.columns))}
        return {metric: number.text for metric, number in numbers.items() if number is not None}


def _config_value(config: dict[str, Any], key: str) -> Any:
    """Value of a dotted key, or the name of the component for a role; None if the config lacks the
    key.
    """
    value = value_at(config, key)
    return value.get("name") if isinstance(value, dict) else value


def load_published(name: str) -> Published:
    """Load the table ``conf/published/<name>.yaml``.

    Raises:
        ConfigError: the file does not exist or is not a valid table.
    """
    path = conf_folders.find("published", name)
    if path is None:
        raise ConfigError(
            f"published={name}: no such table{nearest(name, conf_folders.names('published'))}"
        )
    try:
        return Published(**load_untrusted(path))
    except ValidationError as error:
        raise ConfigError(f"{display_path(path)}: {first_mistake(error)}") from None
    except (TypeError, AttributeError):
        raise ConfigError(f"{display_path(path)}: must be a mapping of keys to values") from None


def published_scores(
    tables: Iterable[str], config: dict[str, Any], data: str
) -> tuple[dict[str, str], str]:
    """Published scores for a run, by metric, and the reason why the scores of the run are not
    comparable.

    The reason is empty if the scores are comparable.

    Raises:
        ConfigError: a table is not in conf/published.
    """
    scores: dict[str, str] = {}
    reason = ""
    for table in map(load_published, tables):
        numbers = table.numbers_for_run(config)
        scores |= numbers
        if numbers and not table.is_comparable_on(data):
            reason = f"not comparable: this run uses {data}, the paper {table.data_label}"
        elif numbers and table.not_comparable:
            reason = f"not comparable: {table.not_comparable}"
    return scores, reason


def format_mean(mean: float, se: float | None, decimals: int = 2) -> str:
    """Format as ``0.31(0.02)``, like the papers, with more decimals if the SE would round to zero."""
    if not math.isfinite(mean):
        return "not finite"
    if se is None or not math.isfinite(se):
        return f"{mean:.{decimals}f}"
    return f"{mean:.{decimals}f}({se:.{decimals}f})"
