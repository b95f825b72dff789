"""Predicted and realised gain of a plan over the equal split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from components.series.budget.sum_law import Array, SumLaw

CENTRAL = (0.05, 0.95)  # quantiles of the interval of a gain


@dataclass(frozen=True)
class Promise:
    """Posterior of the gain in expected sales by a change of spends."""

    gain: float  # its mean over the draws
    lower: float  # central 90 % interval; NaN for a point estimate (one draw)
    upper: float

    @classmethod
    def of(cls, law: SumLaw, change: Array) -> Promise:
        """The gain r'Δu from a change of spends Δu [n], over the draws of r; the noise of sales
        cancels."""
        gains = law.r @ change
        lower, upper = np.quantile(gains, CENTRAL) if len(gains) > 1 else (np.nan, np.nan)
        return cls(float(gains.mean()), float(lower), float(upper))

    def judge(self, realised: float) -> dict[str, float]:
        """Scores of the promise, given the true gain."""
        out = {
            "plan_realised": realised,
            "plan_excess": self.gain - realised,
            "plan_over_promised": float(self.gain > realised),
        }
        if self.has_interval:
            out["plan_coverage90"] = float(self.lower <= realised <= self.upper)
        return out

    @property
    def has_interval(self) -> bool:
        return not np.isnan(self.lower)

    def describe(self) -> str:
        """A description for a figure."""
        interval = (
            f"90 %: {self.lower:.3g} to {self.upper:.3g}"
            if self.has_interval
            else "a point estimate has no interval"
        )
        return f"gain above the equal split: {self.gain:.3g} ({interval})"
