"""Dates in users' formats: read, filled and drawn by one calendar, or refused with a valid form."""

import numpy as np
import pandas as pd
import pytest
import torch
from support.runs.configured import load

from components.errors import ConfigMismatchError
from components.series.figures.forecast import forecast
from components.series.figures.time_axis import axis_times

BERLIN = "Europe/Berlin"


def problem_of(tmp_path, dates, **keys):
    path = tmp_path / "mine.csv"
    path.write_text("when,y\n" + "".join(f"{date},{k}\n" for k, date in enumerate(dates)))
    return load("csv_series", path=str(path), date="when", **keys)[0]


def iso(start, periods, freq, tz=None):
    return [time.isoformat() for time in pd.date_range(start, periods=periods, freq=freq, tz=tz)]


def weeks(first, number):
    return [f"{time:%G-W%V}" for time in pd.date_range(first, periods=number, freq="7D")]


@pytest.mark.parametrize(
    ("dates", "steps", "first", "last"),
    [
        (weeks("2019-12-02", 60), "7 days, 2019-W49 to 2021-W03", "2019-12-02", "2021-01-18"),
        (
            [f"{week}-1" for week in weeks("2019-12-02", 5)],
            "7 days, 2019-W49-1 to 2020-W01-1",
            "2019-12-02",
            "2019-12-30",
        ),
        (
            [week.replace("-", "") for week in weeks("2019-12-02", 5)],
            "7 days, 2019W49 to 2020W01",
            "2019-12-02",
            "2019-12-30",
        ),
        (
            [f"2015-Q{q}" for q in (1, 2, 3, 4)],
            "3 months, 2015-Q1 to 2015-Q4",
            "2015-01-01",
            "2015-10-01",
        ),
        (
            ["2015-03-31", "2015-06-30", "2015-09-30", "2015-12-31"],
            "3 months",
            "2015-03-31",
            "2015-12-31",
        ),
        (
            ["2020-01-30", "2020-02-29", "2020-03-30", "2020-04-30"],
            "1 month",
            "2020-01-30",
            "2020-04-30",
        ),
        (
            ["2016-02-29", "2017-02-28", "2018-02-28", "2019-02-28"],
            "12 months",
            "2016-02-29",
            "2019-02-28",
        ),
        (iso("2024-03-30", 40, "h", BERLIN), "1 hour", "2024-03-29T23:00", "2024-03-31T14:00"),
        (iso("2024-10-26", 40, "h", BERLIN), "1 hour", "2024-10-25T22:00", "2024-10-27T13:00"),
        (iso("2024-03-25T06:00", 12, "6h"), "6 hours", "2024-03-25T06:00", "2024-03-28T00:00"),
        (
            [time.isoformat() for time in pd.bdate_range("2024-03-27", periods=9)],
            "1 business day",
            "2024-03-27",
            "2024-04-08",
        ),
        (
            ["2024-01-01T00:00:00.25", "2024-01-01T00:00:00.50", "2024-01-01T00:00:00.75"],
            "0.25 seconds",
            "2024-01-01T00:00:00.25",
            "2024-01-01T00:00:00.75",
        ),
        (["1950", "1951", "1952"], "12 months, 1950 to 1952", "1950-01-01", "1952-01-01"),
        (["20110103", "20110110", "20110117"], "7 days", "2011-01-03", "2011-01-17"),
    ],
)
def test_dates_are_read_and_shown_on_the_axis(tmp_path, dates, steps, first, last):
    problem = problem_of(tmp_path, dates)
    assert problem.about["steps"].startswith(steps)
    assert problem.observations[0, :, 0].tolist() == list(range(len(dates)))
    axis = axis_times(problem.dates, 0, len(dates))
    assert len(np.unique(axis)) == len(dates)
    assert (pd.Timestamp(axis[0]), pd.Timestamp(axis[-1])) == (
        pd.Timestamp(first),
        pd.Timestamp(last),
    )


@pytest.mark.parametrize(
    ("dates", "gaps", "filled"),
    [
        (["2019-W51", "2019-W52", "2020-W02", "2020-W03"], "allow", ["2020-W01"]),
        (["2015-Q1", "2015-Q2", "2015-Q4", "2016-Q1"], "allow", ["2015-Q3"]),
        (["2020-12-31", "2021-01-31", "2021-03-31", "2021-04-30"], "allow", ["2021-02-28"]),
        (["2024-03-28", "2024-04-02", "2024-04-03"], "business_days", ["2024-03-29", "2024-04-01"]),
        (["2024-03-28", "2024-03-29", "2024-04-01"], "allow", ["2024-03-30", "2024-03-31"]),
    ],
)
def test_gaps_are_named_by_their_neighbours(tmp_path, dates, gaps, filled):
    problem = problem_of(tmp_path, dates, gaps=gaps)
    assert [date for date in problem.dates if date not in dates] == filled
    assert problem.missing.sum() == len(filled)
    assert (np.diff(axis_times(problem.dates, 0, len(problem.dates))) > np.timedelta64(0)).all()


@pytest.mark.parametrize(
    ("dates", "keys", "message"),
    [
        (
            ["01/02/2020", "02/02/2020"],
            {},
            "line 2: when '01/02/2020' is not a date; .* dataset.date_format, such as",
        ),
        (
            ["3 Jan 2011", "4 Jan 2011"],
            {},
            r"when '3 Jan 2011' is not a date; write 2011-01-03, .* or set dataset.date_format",
        ),
        (["2019-W53", "2020-W01"], {}, "line 2: when '2019-W53' is not a date"),
        (["2019-02-29", "2019-03-01"], {}, "line 2: when '2019-02-29' is not a date"),
        (
            ["01/02/2020"],
            {"date_format": "%d/%m"},
            "dataset.date_format=%d/%m: contains no year; write %Y",
        ),
        (["01/02/2020"], {"date_format": "mixed"}, "dataset.date_format=mixed: contains no year"),
        (["2019-W49"], {"date_format": "%G-W%V"}, "dataset.date_format=%G-W%V: ISO year directive"),
        (
            ["01/02/2020", "32/02/2020"],
            {"date_format": "%d/%m/%Y"},
            "line 3: when '32/02/2020' does not match dataset.date_format=%d/%m/%Y",
        ),
        (
            ["2024-10-27T01:00", "2024-10-27T02:00", "2024-10-27T02:00"],
            {},
            "line 4: when 2024-10-27T02:00 occurs twice; .*clock change need an offset, as in 2024-10-27T02:00",
        ),
        (
            ["2024-03-31T00:00", "2024-03-31T01:00", "2024-03-31T03:00"],
            {},
            "1 missing between .* need an offset",
        ),
        (
            ["2024-03-31T00:00+01:00", "2024-03-31T01:00"],
            {},
            "line 3: when 2024-03-31T01:00 has no offset from UTC",
        ),
        (
            ["2024-03-29T23:00Z", "2024-03-30T23:00Z", "2024-03-31T22:00Z", "2024-04-01T22:00Z"],
            {},
            "no equal steps between .* elsewhere 1 day; times are read in UTC: for local midnights give only the dates",
        ),
        (
            ["2024-03-28", "2024-04-02", "2024-04-03", "2024-04-04"],
            {},
            r"4 missing between .* and 2024-04-02; add lines, or dataset.gaps=business_days \(Monday to Friday\) or allow",
        ),
        (
            ["2024-03-28", "2024-03-29", "2024-03-30"],
            {"gaps": "business_days"},
            "2024-03-30 .* is not a business day",
        ),
        (
            ["2020-01-01T00:00:00", "2020-01-01T00:00:01", "2022-01-01T00:00:00"],
            {"gaps": "allow"},
            "line 4: when 2022-01-01T00:00:00 follows a gap of 63,158,398 times of 1 second after .*; correct the date",
        ),
        (
            ["1/1/68", "1/1/69"],
            {"date_format": "%d/%m/%y"},
            r"1/1/69 \(1969-01-01\) comes after 1/1/68 \(2068-01-01\)",
        ),
        (
            ["2024-03-31 01:15", "2024-03-31 01:30", "2024-03-31 01:45", "2024-03-31 03:00"],
            {},
            "4 missing .* need an offset",
        ),
        (
            ["2024-03-28", "2024-03-29", "2024-03-30"],
            {"n_ahead": "soon"},
            "dataset.n_ahead: 'soon' is not a date",
        ),
    ],
)
def test_invalid_dates_are_refused_with_a_valid_form(tmp_path, dates, keys, message):
    with pytest.raises(ConfigMismatchError, match=message) as error:
        problem_of(tmp_path, dates, **keys)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("dates", "n_ahead", "ahead"),
    [
        (weeks("2019-12-02", 6), "2020-W01", 2),
        (
            weeks("2019-12-02", 6),
            "2019-12-31",
            1,
        ),  # the first week that starts at this date or later
        ([f"2015-Q{q}" for q in (1, 2, 3, 4)], "2015-Q3", 2),
        (iso("2024-03-30", 40, "h", BERLIN), "2024-03-31T14:00+02:00", 3),
        (iso("2024-03-30", 40, "h", BERLIN), "2024-03-31T12:00", 3),  # in UTC
    ],
)
def test_forecast_starts_at_a_given_date(tmp_path, dates, n_ahead, ahead):
    assert problem_of(tmp_path, dates, n_ahead=n_ahead).future.shape[1] == ahead


def test_format_key_is_used(tmp_path):
    dates = ["01/02/2020", "02/02/2020", "03/02/2020", "04/02/2020"]
    by_day = problem_of(tmp_path, dates, date_format="%d/%m/%Y", n_ahead="03/02/2020")
    assert by_day.dates == ("2020-02-01", "2020-02-02", "2020-02-03", "2020-02-04")
    assert by_day.future.shape[1] == 2
    assert problem_of(tmp_path, dates, date_format="%m/%d/%Y").dates[1] == "2020-02-02"


def test_hours_do_not_coincide_in_figures(tmp_path):
    """Truncated to days, 40 hours would take only two places of the axis."""
    problem = problem_of(tmp_path, iso("2024-03-30", 40, "h"), n_ahead=4)
    calendar = type(
        "Found",
        (),
        {"mean": torch.ones(4, 1), "quantile": lambda self, level: torch.full((4, 1), level)},
    )()
    figure = forecast(
        problem.observations[0, :, 0], problem.future[0, :, 0], calendar, problem.dates
    )["forecast"]
    lines = [np.asarray(line.get_xdata()) for line in figure.axes[0].lines]
    assert [len(np.unique(x)) for x in lines] == [4, 12, 4]
    assert all(np.issubdtype(x.dtype, np.datetime64) for x in lines)


def test_dates_without_a_calendar_are_refused_before_any_work(tmp_path):
    from dataclasses import replace

    problem = problem_of(tmp_path, ["1950", "1951", "1952"])
    with pytest.raises(ConfigMismatchError, match=r"'soon' .*; give dates as 2011-01-03"):
        replace(problem, dates=("1950", "soon", "1952"))
