"""A number of prose with its standard error and marks."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A number with its SE, and what is to be known of the runs behind it."""

    value: float
    se: float | None
    digits: int
    doubted: bool
    few: bool

    @property
    def marks(self) -> str:
        """† and ‡."""
        return ("†" if self.doubted else "") + ("‡" if self.few else "")

    @property
    def decimals(self) -> int:
        """Decimals that the SE asks for."""
        noise = 1e-9 * abs(self.value)  # rounding of equal values
        if self.se is None or not math.isfinite(self.se) or self.se <= noise:
            return self.digits
        exponent = math.floor(math.log10(self.se))
        first = self.se / 10.0**exponent
        return max(0, (1 if first < 1.95 else 0) - exponent)

    def format(self, decimals: int | None = None, signed: bool = False, unit: str = "") -> str:
        """``0.89 ± 0.02†``."""
        if not math.isfinite(self.value):
            return f"not finite{self.marks}"
        n = self.decimals if decimals is None else decimals
        sign = "+" if signed else ""
        text = f"{self.value:{sign},.{n}f}".replace("-", "−")
        if self.se is not None and math.isfinite(self.se):
            text += f" ± {self.se:,.{n}f}"
        return f"{text}{unit}{self.marks}"
