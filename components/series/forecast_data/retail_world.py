"""Weekly environment of a restaurant chain's sales.

It comprises calendar, weather, economy, and the chain's spending.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from dateutil.easter import easter
from torch import Tensor

FIRST = datetime.date(2011, 1, 3)  # a Monday; section 1.2.3: January 2011
YEAR = 365.25 / 7  # weeks


@dataclass(frozen=True)
class RetailWorld:
    """Random numbers of one series of T weeks that begin on a Monday."""

    weeks: int  # T
    generator: torch.Generator

    @property
    def week_start_dates(self) -> list[datetime.date]:
        return [FIRST + datetime.timedelta(weeks=t) for t in range(self.weeks)]

    def _normal(self) -> Tensor:
        return torch.randn(self.weeks, generator=self.generator, dtype=torch.float64)

    def _uniform(self) -> Tensor:
        return torch.rand(self.weeks, generator=self.generator, dtype=torch.float64)

    def _yearly_wave(self, peak: float) -> Tensor:
        """A wave of one year, highest ``peak`` weeks after the first of January."""
        t = torch.arange(self.weeks, dtype=torch.float64) + (FIRST.timetuple().tm_yday - 1) / 7
        return torch.cos(2 * math.pi * (t - peak) / YEAR)

    def _autoregression(self, phi: float) -> Tensor:
        """Autoregression of variance 1, stationary from the start."""
        z = self._normal()
        out = torch.empty(self.weeks, dtype=torch.float64)
        out[0] = z[0]
        for t in range(1, self.weeks):
            out[t] = phi * out[t - 1] + math.sqrt(1 - phi**2) * z[t]
        return out

    def holidays(self) -> Tensor:
        """Holidays in the week: Christmas, a week at Easter, four in August, and two days in one of
        twenty other weeks."""
        days = torch.zeros(self.weeks, dtype=torch.float64)
        sundays = {
            year: easter(year) for year in range(FIRST.year, self.week_start_dates[-1].year + 2)
        }
        for t, monday in enumerate(self.week_start_dates):
            for day in (monday + datetime.timedelta(days=d) for d in range(7)):
                before_easter = (sundays[day.year] - day).days
                christmas = (day.month, day.day) >= (12, 22) or (day.month, day.day) <= (1, 6)
                days[t] += (
                    christmas or -1 <= before_easter <= 6 or (day.month == 8 and day.day <= 28)
                )
        return torch.where(days == 0, (self._uniform() < 0.05) * 2.0, days)

    def sport(self) -> Tensor:
        """1 in a week of a large sporting event, a week in six."""
        return (self._uniform() < 1 / 6).double()

    def temperature(self) -> Tensor:
        """Mean of the week, °C."""
        return 15.0 + 8.0 * self._yearly_wave(peak=29) + 2.5 * self._autoregression(0.4)

    def rain(self) -> Tensor:
        """Rainfall of each week in mm."""
        wet = torch.exp(0.6 * self._yearly_wave(peak=2) + 0.8 * self._autoregression(0.2))
        return 12.0 * wet

    def unemployment(self) -> Tensor:
        """Index around 100 with slow waves."""
        return 100.0 + 5.0 * self._autoregression(0.97)

    def prices(self) -> Tensor:
        """Index, 100 at first: it rises by 2 % a year."""
        return 100.0 * torch.exp((0.02 / YEAR + 0.001 * self._normal()).cumsum(0))

    def confidence(self) -> Tensor:
        """Index of consumers' confidence around 80."""
        return 80.0 + 6.0 * self._autoregression(0.95)

    def even(self, mean: float) -> Tensor:
        """Spends in all weeks, gamma distributed with shape 6."""
        shape = torch.full((self.weeks,), 6.0, dtype=torch.float64)
        return mean / 6 * torch._standard_gamma(shape, generator=self.generator)

    def bursts(self, mean: float, share: float) -> Tensor:
        """Campaigns of three weeks on average that fill this share of the weeks, with zero spends
        between them; share 1 is ``even``."""
        if share == 1:
            return self.even(mean)
        out = torch.zeros(self.weeks, dtype=torch.float64)
        on = False
        change = self._uniform()
        size = self.even(mean / share)
        for t in range(self.weeks):
            on = bool(change[t] < (2 / 3 if on else (share / 3) / (1 - share)))
            out[t] = size[t] if on else 0.0
        return out


REGRESSORS: dict[str, Callable[[RetailWorld], Tensor]] = {
    "Hols": RetailWorld.holidays,
    "Sport_EV": RetailWorld.sport,
    "AVG_Temp": RetailWorld.temperature,
    "AVG_Rain": RetailWorld.rain,
    "Unemp_IX": RetailWorld.unemployment,
    "Price_IX": RetailWorld.prices,
    "CC_IX": RetailWorld.confidence,
}
# Million EUR a week, chosen here: in section 1.2.3 TV and OOH dominate, and some channels are
# spread evenly, others in spikes.
CHANNELS = {  # mean, and share of weeks with a campaign
    "OOH": (1.5, 0.4),
    "RADIO": (0.5, 0.3),
    "TV": (2.5, 0.5),
    "ONLINE": (0.4, 0.4),
    "SEARCH": (0.3, 1.0),
    "PRESS": (0.1, 0.1),
    "CINEMA": (0.05, 0.05),
}
