"""Dates that follow a series, and rows with other dates."""

import pandas as pd
import pytest
import torch
from support.runs.configured import load

from components.series.calendars.dates_ahead import dates_ahead, find_other_dates
from runner.errors import ConfigError
from runner.python.export.new_rows import check_times, read_rows

MONTHS = ("2022-10", "2022-11", "2022-12")
EXPECTED = ["2023-01", "2023-02"]


@pytest.mark.parametrize(
    ("dates", "ahead"),
    [
        (MONTHS, EXPECTED),
        (("2020-01-31", "2020-02-29"), ["2020-03-31", "2020-04-30"]),
        (("2024-03-21", "2024-03-22", "2024-03-25"), ["2024-03-26", "2024-03-27"]),
        (
            ("2024-03-19", "2024-03-20", "2024-03-21", "2024-03-22", "2024-03-25"),
            ["2024-03-26", "2024-03-27"],
        ),
        (("2020-W52", "2020-W53"), ["2021-W01", "2021-W02"]),
        (("2024",), []),
        ((), []),
    ],
)
def test_dates_follow_in_equal_steps(dates, ahead):
    assert dates_ahead(dates, len(dates), 2) == ahead
    if len(dates) > 2:
        assert dates_ahead(dates, len(dates) - 1, 2) == [dates[-1], ahead[0]]


@pytest.mark.parametrize(
    ("texts", "expected", "wrong"),
    [
        (EXPECTED, EXPECTED, []),
        (["2023-01-01", "2023-02-01 00:00:00"], EXPECTED, []),
        (["01.01.2023", "01.02.2023"], EXPECTED, []),
        (["2031-01", "2031-02"], EXPECTED, [0, 1]),
        (["2023-01", "2023-04"], EXPECTED, [1]),
        (["2023-02", "2023-01"], EXPECTED, [0, 1]),
    ],
)
def test_rows_have_the_expected_dates(texts, expected, wrong):
    assert find_other_dates(texts, expected, "rows.csv: month", "%d.%m.%Y") == wrong


def test_series_rows_equal_those_of_its_file(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text(
        "month;y;promo\n01.10.2022;1,5;0\n31.10.2022;2,5;1\n30.11.2022;1,5;1\n".replace(
            "01.10", "30.09"
        )
    )
    series = load(
        "csv_series",
        path=str(file),
        columns=["y"],
        date="month",
        date_format="%d.%m.%Y",
        regressors=["promo"],
    )[0]
    assert series.columns.decimal == ","
    assert series.columns.time.date_format == "%d.%m.%Y"
    rows = tmp_path / "rows.csv"
    rows.write_text("month;promo\n31.12.2022;1\n\n31.01.2023;0\n")
    with pytest.warns(UserWarning, match=r"rows.csv: .* 1, .* first at line 3"):
        frame = read_rows(rows, series.columns)
    expected = dates_ahead(series.dates, 3, 2)
    check_times(frame, series.columns.time, expected, "rows.csv")
    indexed = pd.DataFrame(
        {"promo": [1, 0]}, index=pd.date_range("2022-12-31", periods=2, freq="ME")
    )
    check_times(indexed, series.columns.time, expected, "the frame")
    with pytest.raises(
        ConfigError, match=r"row 2023-01-31 00:00:00: month is .* expected 2022-12-31; give"
    ):
        check_times(indexed[1:], series.columns.time, expected[:1], "the frame")
    check_times(torch.zeros(2, 1), series.columns.time, expected, "the frame")
