"""Times of a series counted in equal steps: months, business days or microseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from components.errors import ConfigMismatchError

if TYPE_CHECKING:
    import pandas as pd

Gaps = Literal["error", "allow", "business_days"]
Integers = NDArray[np.int64]
MONTH = 28  # fewest days between two dates on the same day of the month
DAY = 86_400_000_000
HOUR = 3_600_000_000  # microseconds


class EqualSteps(NamedTuple):
    """Times counted in one unit: months, microseconds or business days."""

    counts: Integers  # [n]
    unit: str
    later: Callable[[int], pd.Timestamp]  # the time of a count

    @property
    def step(self) -> int:
        """The most common difference; ties go to the shortest."""
        times = Counter(np.diff(self.counts).tolist())
        return int(min(times, key=lambda difference: (-times[difference], difference)))

    @property
    def has_gaps(self) -> bool:
        return bool((np.diff(self.counts) != self.step).any())

    def __str__(self) -> str:
        unit = self.unit
        number = f"{self.step}"
        if unit == "seconds":
            number = f"{self.step / 1e6:g}"
            for name, size in (("days", DAY), ("hours", HOUR), ("minutes", HOUR // 60)):
                if self.step % size == 0:
                    unit = name
                    number = f"{self.step // size}"
                    break
        return f"{number} {unit.removesuffix('s') if number == '1' else unit}"


def count_steps(times: pd.DatetimeIndex, gaps: Gaps) -> EqualSteps:
    """Times counted in months, in business days, or in microseconds."""
    import pandas as pd

    elapsed = EqualSteps(times.as_unit("us").asi8, "seconds", partial(pd.Timestamp, unit="us"))
    if gaps == "business_days":
        return _business_days(times)
    if (months := _find_month_steps(times)) is not None:
        return months
    # With gaps=allow, weekends count as missing unless every other day is present.
    if gaps == "error" and are_weekdays(times) and elapsed.step == DAY and elapsed.has_gaps:
        business = _business_days(times)
        return elapsed if business.has_gaps else business
    return elapsed


def _find_month_steps(times: pd.DatetimeIndex) -> EqualSteps | None:
    """Times counted in months.  None if they are not on one day of the month, or on its last."""
    clock = times - times.normalize()
    last = times.days_in_month
    anchor = 31 if (times.day == last).all() else int(times.day.max())
    same = (clock == clock[0]).all() and (times.day == np.minimum(anchor, last)).all()
    if not same or int(np.diff(times.as_unit("us").asi8).min()) < MONTH * DAY:
        return None

    def later(count: int) -> pd.Timestamp:
        import pandas as pd

        first = pd.Timestamp(count // 12, count % 12 + 1, 1)
        return first.replace(day=min(anchor, first.days_in_month)) + clock[0]

    return EqualSteps(
        np.asarray(12 * times.year + times.month - 1, dtype=np.int64), "months", later
    )


def _business_days(times: pd.DatetimeIndex) -> EqualSteps:
    """Times counted in days from Monday to Friday.

    Raises:
        ConfigMismatchError: a time is on a weekend or not at midnight."""
    if not are_weekdays(times):
        row = int(((times.day_of_week > 4) | (times != times.normalize())).argmax())
        raise ConfigMismatchError(
            f"dataset.gaps=business_days: {times[row]} is not a business day at midnight; set it to allow"
        )
    counts = np.busday_count("1970-01-01", times.to_numpy().astype("datetime64[D]"))
    first = int(counts[0])

    def later(count: int) -> pd.Timestamp:
        import pandas as pd

        return times[0] + pd.offsets.BusinessDay(count - first)

    return EqualSteps(counts, "business days", later)


def are_weekdays(times: pd.DatetimeIndex) -> bool:
    return bool((times.day_of_week < 5).all() and (times == times.normalize()).all())
