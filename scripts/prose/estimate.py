"""A number of prose with its standard error and marks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

PERCENT = 100.0


@dataclass(frozen=True)
class Estimate:
    """A number with its SE, and facts about the runs behind it."""

    value: float
    se: float | None
    digits: int  # decimals of a number without SE
    failure: str = ""  # mark of failed checks of the runs behind it
    few: bool = False  # fewer than five replicates
    signed: bool = False
    decimals: int | None = None  # None if set by the SE
    unit: str = ""
    is_bold: bool = False  # a significant difference

    @property
    def marks(self) -> str:
        """† or ¶, and ‡."""
        return self.failure + ("‡" if self.few else "")

    @property
    def has_se(self) -> bool:
        """True if there is a finite SE."""
        return self.se is not None and math.isfinite(self.se)

    @property
    def places(self) -> int:
        """Decimals to show: as configured, or one significant digit of the SE, two after a 1."""
        if self.decimals is not None:
            return self.decimals
        noise = 1e-9 * abs(self.value)  # rounding of equal values
        if self.se is None or not self.has_se or self.se <= noise:
            return self.digits
        exponent = math.floor(math.log10(self.se))
        first = self.se / 10.0**exponent
        return max(0, (1 if first < 1.95 else 0) - exponent)

    def to_percent(self) -> Estimate:
        """The estimate as a percentage."""
        se = None if self.se is None else self.se * PERCENT
        digits = max(0, self.digits - 2)
        return replace(self, value=self.value * PERCENT, se=se, digits=digits, unit=" %")

    def format_value(self, places: int) -> str:
        """The value without SE and marks."""
        sign = "+" if self.signed else ""
        return f"{self.value:{sign},.{places}f}".replace("-", "−")

    def __str__(self) -> str:
        """``0.89 ± 0.02†``."""
        if not math.isfinite(self.value):
            return f"not finite{self.marks}"
        error = f" ± {self.se:,.{self.places}f}" if self.has_se else ""
        text = f"{self.format_value(self.places)}{error}{self.unit}{self.marks}"
        return f"**{text}**" if self.is_bold else text
