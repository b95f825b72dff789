"""Structural series: every block and sums of blocks, compared with statsmodels and with the dense
Gaussian."""

import math

import pytest
import torch
from support.runs.configured import double
from support.series.structural_series import TIMES, block, draw_theta, joint, model, problem
from torch.distributions import MultivariateNormal

from components.errors import ConfigMismatchError
from components.maths.time_varying import filter_system

SUMS = {
    "local_level": ["local_level"],
    "local_linear_trend": ["local_linear_trend"],
    "semilocal_trend": ["semilocal_trend"],
    "seasonal": [block("seasonal", period=4)],
    "trigonometric": [block("trigonometric", period=6.5, harmonics=2)],
    "trigonometric_even": [block("trigonometric", period=4, harmonics=2)],
    "autoregressive": [block("autoregressive", lags=2)],
    "regression": ["regression_small"],
    "dynamic_regression": ["dynamic_regression"],
    "nerlove_arrow": ["nerlove_arrow"],
    "koyck": ["koyck"],
    "sum": [
        "local_linear_trend",
        block("seasonal", period=4),
        block("autoregressive", lags=1),
        "regression_small",
    ],
}
MISSING = (3, 4, 17, TIMES - 1)


def blocks(name):
    small = block("regression", expected_size=1.0)
    return [small if part == "regression_small" else part for part in SUMS[name]]


@pytest.mark.parametrize("name", SUMS)
def test_likelihood_equals_the_dense_gaussian(name):
    data = problem(missing=MISSING)
    built = model(*blocks(name), of=data)
    theta = draw_theta(built)
    design = built.design(data.series)
    system = built.system(theta, design)

    log_p = filter_system(system, design.y, design.seen.tolist()).log_density

    for c in range(len(theta)):
        whole, _, _ = joint(system, c)
        is_observed = design.seen
        marginal = MultivariateNormal(
            whole.loc[is_observed], whole.covariance_matrix[is_observed][:, is_observed]
        )
        assert log_p[c] == pytest.approx(float(marginal.log_prob(design.y[is_observed])), rel=1e-10)


PEERS = {  # names of UnobservedComponents, and the order of its parameters here
    "local_level": ({"level": "local level"}, ["sigma2.irregular", "sigma2.level"]),
    "local_linear_trend": (
        {"level": "local linear trend"},
        ["sigma2.irregular", "sigma2.level", "sigma2.trend"],
    ),
    "seasonal": ({"irregular": True, "seasonal": 4}, ["sigma2.irregular", "sigma2.seasonal"]),
    "trigonometric": (
        {"irregular": True, "freq_seasonal": [{"period": 6.5, "harmonics": 2}]},
        ["sigma2.irregular", "sigma2.freq_seasonal_6.5(2)"],
    ),
    "trigonometric_even": (
        {"irregular": True, "freq_seasonal": [{"period": 4, "harmonics": 2}]},
        ["sigma2.irregular", "sigma2.freq_seasonal_4(2)"],
    ),
    "autoregressive": (
        {"irregular": True, "autoregressive": 2},
        ["sigma2.irregular", "sigma2.ar", "ar.L1", "ar.L2"],
    ),
    "regression": ({"irregular": True}, ["sigma2.irregular", "beta.x1", "beta.x2"]),
    "sum": (
        {"level": "local linear trend", "seasonal": 4, "autoregressive": 1},
        [
            "sigma2.irregular",
            "sigma2.level",
            "sigma2.trend",
            "sigma2.seasonal",
            "sigma2.ar",
            "ar.L1",
            "beta.x1",
            "beta.x2",
        ],
    ),
}


@pytest.mark.parametrize("missing", [(), MISSING], ids=["whole", "missing"])
@pytest.mark.parametrize("name", PEERS)
def test_likelihood_equals_statsmodels(name, missing):
    sm = pytest.importorskip("statsmodels.tsa.statespace.structural")
    data = problem(missing=missing)
    built = model(*blocks(name), of=data)
    theta = draw_theta(built)
    design = built.design(data.series)
    keys, order = PEERS[name]
    exog = design.X.numpy() if design.X.shape[1] else None
    peer = sm.UnobservedComponents(design.y.numpy(), exog=exog, **keys)
    structure = built.structure
    peer.ssm.loglikelihood_burn = 0
    size = peer.k_states
    mean = structure.mean
    sd = structure.sd
    # its last wave has an unobserved state, or a series without states has one that stays 0
    if size > len(mean):
        mean, sd = (torch.cat([v, v.new_zeros(size - len(mean))]) for v in (mean, sd))
    peer.ssm.initialize_known(mean.numpy(), torch.diag(sd.square()).numpy())

    log_p = filter_system(built.system(theta, design), design.y, design.seen.tolist()).log_density

    for c, row in enumerate(theta):
        named = dict(zip(order, row.tolist(), strict=True))
        values = [named[n] ** (2 if n.startswith("sigma2") else 1) for n in peer.param_names]
        assert log_p[c] == pytest.approx(peer.loglike(values, transformed=True), rel=1e-8)


def test_stocks_equal_the_goodwill_of_the_thesis():
    """A_{t+1} = (1 − δ) A_t + Σ q_i u_it equals q times the stocks at all times; spending at t does
    not move y_t."""
    data = problem()
    built = model("nerlove_arrow", of=data)
    theta = draw_theta(built, 1)
    design = built.design(data.series)
    kept = theta[0, 2]
    q = theta[0, 3:]
    A = double(0.0)
    expected = []
    assert data.inputs is not None
    for u in data.inputs:  # eq. (1.4)
        expected.append(A)
        A = kept * A + (q * u).sum()

    assert torch.allclose(built.system(theta, design).offset[0], torch.stack(expected), rtol=1e-12)


def test_koyck_uses_the_sales_and_spending_of_last_week():
    data = problem(missing=(7,))
    design = model("koyck", of=data).design(data.series)

    assert (~design.seen).nonzero().squeeze(1).tolist() == [0, 7, 8]
    assert torch.allclose(design.X[5, 0], design.y[4] - design.y[0])
    assert torch.allclose(design.X[5, 1:], data.inputs[4])


def test_priors_scale_with_the_series_and_slabs_with_columns():
    data = problem()
    keys = {"inclusion": {"a": 1.0}, "expected_size": 0.25, "standardise": False}
    built = model("local_level", block("regression", **keys), of=data)
    s = built.structure
    y = data.observations[0, :, 0]
    X = data.regressors

    scales = [[scale.guess, scale.upper] for scale in s.scales]
    expected = float(y.std()) * double([[math.sqrt(0.5), 1.2], [0.01, 1.0]])
    assert torch.allclose(double(scales), expected)
    assert s.inclusion.tolist() == [1.0, 0.25]
    expected = 0.01 * (0.5 * X.T @ X + 0.5 * torch.diag((X.T @ X).diagonal())) / TIMES
    assert torch.allclose(s.precision, expected)
    assert built.structure.names == ("observation_sd", "level_sd", "a", "b")


MISTAKES = [
    (
        [block("seasonal", period=60)],
        r"model.blocks.0.period=60: longer than the 24 .*; use a shorter period",
    ),
    (
        [block("trigonometric", period=6, harmonics=4)],
        r"model.blocks.0.harmonics=4: a period of 6 has at most 3",
    ),
    (
        [block("autoregressive", lags=24)],
        "model.blocks.0.lags=24: there are only 24 .*; lower it",
    ),
    (
        [block("regression", columns=["c"])],
        "model.blocks.0.columns=c: no such regressor; there are a, b",
    ),
    (
        [block("regression", expected_size=3.0)],
        r"model.blocks.0.expected_size=3: exceeds the 2 columns to choose from",
    ),
    (
        [block("nerlove_arrow", inclusion={"radio": 1.0})],
        "model.blocks.0.inclusion.radio: unknown column; .* are tv, web",
    ),
    (
        [block("nerlove_arrow", inputs=["radio"])],
        "model.blocks.0.inputs=radio: no such input; there are tv, web",
    ),
    (["local_level", "local_linear_trend"], "two blocks have a parameter level_sd"),
]


@pytest.mark.parametrize(("parts", "message"), MISTAKES)
def test_invalid_keys_are_named(parts, message):
    with pytest.raises(ConfigMismatchError, match=message):
        model(*parts)


def test_more_invalid_keys_are_named():
    empty, unknown, constant = (problem() for _ in range(3))
    empty.observations[:] = math.nan
    unknown.beyond.x[2, 0] = math.nan
    constant.regressors[:, 1] = 2.0
    regression = block("regression", expected_size=1.0)
    for part, data, message in (
        ("local_level", empty, "y is missing or constant"),
        (regression, unknown, "a is not known at all forecast times"),
        (regression, constant, "b is constant over the observed times"),
    ):
        with pytest.raises(ConfigMismatchError, match=message):
            model(part, of=data)
