"""Shares of found and kept columns, calculated by hand."""

from components.series.forecasting import score_selection


def test_shares_of_regressors_and_inputs_are_separate():
    truth = {"a": 2.0, "b": -1.0, "c": 0.0, "d": 0.0, "tv": 0.3, "radio": 0.0}
    inclusion = {
        "a": 0.9,
        "b": 0.5,
        "c": 0.49,
        "d": 0.6,
        "tv_lag": 0.2,
        "radio_lag": 0.7,
        "y_lag": 1.0,
    }
    assert score_selection(inclusion, truth, ["tv", "radio"]) == {
        "true_found": 1.0,
        "idle_kept": 0.5,
        "inputs_true_found": 0.0,
        "inputs_idle_kept": 1.0,
    }
    assert score_selection({"a": 0.1}, truth, []) == {"true_found": 0.0}
