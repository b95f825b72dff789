"""Saturation, wear and interactions of channels: literal equations, and recovery from simulated
sales."""

import pytest
import torch
from support.runs.configured import (
    component,
    double,
    draw_uniform,
    generator,
    make_setting,
    normal,
    uniform,
)
from support.series.structural_series import AHEAD, F64, block, draw_theta, joint, model, problem
from support.small.small_problems import train
from torch.testing import assert_close

from components.contracts.structural import Covariates, Facts
from components.errors import ConfigMismatchError
from components.maths.time_varying import filter_system
from components.series.figures.advertising.spends import spends
from components.series.forecasting import split
from components.series.maths.advertising import effectiveness
from components.series.sequence import Sequence
from runner.execution.rng import Streams

U = double([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0], [4.0, 2.0]])


def columns(name="nerlove_arrow", **keys):
    y = torch.arange(4, dtype=F64)
    facts = Facts(Covariates(y, None, U), 1.0, 0.0, [], ["tv", "web"], "model.blocks.0")
    regressors = block(name, expected_size=None, **keys).terms(facts).regressors
    return regressors.names, regressors.columns(facts.seen)


def test_channels_saturate_and_interact():
    names, matrix = columns(saturation={"tv": [0.5, 2.0]}, power=2.0, interactions=[["web", "tv"]])
    tv, web = U.T
    expected = [tv**2 / (0.25 + tv**2), tv**2 / (4.0 + tv**2), web, web * tv**2 / (0.25 + tv**2)]
    assert names == ("tv_half_0.5", "tv_half_2", "web", "web_x_tv")
    assert_close(matrix, torch.stack(expected, 1))


def test_koyck_saturation_is_lagged_by_a_week():
    names, matrix = columns("koyck", saturation={"web": [1.0]})
    assert names == ("y_lag", "tv_lag", "web_half_1_lag")
    assert_close(matrix[1:, 2], U[:-1, 1] / (1 + U[:-1, 1]))


def test_advertising_wears_in_and_out():
    """On, on, off, on: 1 − ρ^k in the k-th week in a row; a factor 1 − ω after a week on, and
    recovery by r after a week off."""
    rho = 0.4
    omega = 0.3
    r = 0.5
    worn = [1.0, 0.7, 0.49, 0.49 + 0.5 * 0.51]
    expected = [(1 - rho) * worn[0], (1 - rho**2) * worn[1], 0.0, (1 - rho) * worn[3]]
    effect = effectiveness(U[:, :1], rho, omega, r)[:, 0]
    assert_close(effect.tolist(), expected)
    _, effect = columns(wear_in=rho, wear_out=omega, recovery=r)
    assert_close(
        effect[:, 0].tolist(), [e * u for e, u in zip(expected, U[:, 0].tolist(), strict=True)]
    )


@pytest.mark.parametrize("key", ["saturation", "interactions"])
def test_unknown_channel_is_refused(key):
    value = {"radio": [1.0]} if key == "saturation" else [["tv", "radio"]]
    with pytest.raises(
        ConfigMismatchError, match=rf"model.blocks.0.{key}: radio is not among its channels"
    ):
        columns(**{key: value})


def simulate_sales(half):
    """Sales with 6 s_tv + 2 s_web, s_tv saturated at ``half``."""
    g = generator(5)
    n = 160 + AHEAD
    u = 3 * uniform(g, n, 2) ** 2
    flow = 6 * u[:, 0] / (half + u[:, 0]) + 2 * u[:, 1]
    goodwill = torch.zeros(n, dtype=F64)
    for t in range(1, n):
        goodwill[t] = 0.5 * goodwill[t - 1] + flow[t - 1]
    y = 20 + goodwill + 0.3 * normal(g, n)
    whole = Sequence(
        "sales", None, y.view(1, -1, 1), None, ["y"], inputs=u, input_names=["tv", "web"]
    )
    return split(whole, AHEAD, "end")


def fit_gibbs(data, **keys):
    gibbs = component("inference", "structural_gibbs", burn_in=150, chains=2)
    goodwill = block("nerlove_arrow", expected_size=2.0, **keys)
    state, _ = train(gibbs, model("local_level", goodwill, of=data), data, 400)
    return gibbs.posterior(state)


def check_selected(posterior, column, *others):
    """Assert that one column is included, with its effect of 6."""
    shares = posterior.inclusion
    assert shares[column] > 0.95
    assert max(shares[other] for other in others) < 0.3
    q = float(posterior.mean[posterior.names.index(column)])
    assert q == pytest.approx(6.0, abs=0.6)


def test_half_saturation_is_recovered_from_simulation():
    posterior = fit_gibbs(simulate_sales(0.5), saturation={"tv": [0.05, 0.5, 10.0]})
    check_selected(posterior, "tv_half_0.5", "tv_half_0.05", "tv_half_10")


def test_plans_require_proportional_effects():
    data = problem()
    for keys in (
        {"saturation": {"tv": [1.0]}},
        {"wear_out": 0.2},
        {"interactions": [["tv", "web"]]},
        {"vidale_wolfe": {"tv": [0.2]}},
    ):
        for name in ("nerlove_arrow", "koyck"):
            if name == "koyck" and "vidale_wolfe" in keys:
                continue
            gibbs = component("inference", "structural_gibbs", burn_in=0, chains=1)
            rng = Streams(0)
            state = gibbs.init(model(block(name, expected_size=None, **keys), of=data), data, rng)
            with pytest.raises(
                ConfigMismatchError, match=r"dataset\.budget: .* set dataset\.budget\.total=null"
            ):
                gibbs.posterior(state).affine(data.series, 2, torch.Generator())


def test_simulated_channels_saturate():
    """In weeks without noise A_{t+1} − (1 − δ) A_t is q u/(h + u)."""
    dataset = component(
        "dataset",
        "retail_sim",
        n_steps=30,
        n_train=20,
        channels=["TV"],
        q={"TV": 4.0},
        half={"TV": 2.0},
        effects={},
        goodwill_sd=0.0,
        level_sd=0.0,
        observation_sd=1e-6,
        level=0.0,
    )
    data = dataset.load(Streams(0), make_setting())
    y = data.observations[0, :, 0]
    u = data.inputs[:20, 0]
    assert torch.allclose(y[1:] - 0.5 * y[:-1], 4 * u[:-1] / (2 + u[:-1]), atol=1e-4)


def vidale_wolfe_goodwill(u, delta, r, M):
    """A_{t+1} = A_t + r u_t (1 − A_t/M) − δ A_t from 0."""
    A = [torch.zeros((), dtype=F64)]
    for spent in u[:-1]:
        A.append(A[-1] + r * spent * (1 - A[-1] / M) - delta * A[-1])
    return torch.stack(A)


def test_vidale_wolfe_sales_match_dense_gaussian():
    data = problem()
    built = model(
        "local_level",
        block("nerlove_arrow", expected_size=None, vidale_wolfe={"tv": [0.3]}),
        of=data,
    )
    structure = built.structure
    assert structure.column_names == ("tv_limit_0.3", "web")
    theta = draw_theta(built, sets=1)
    design = built.design(data.series)
    system = built.system(theta, design)
    values = dict(zip(structure.names, theta[0], strict=True))
    delta = 1 - values["goodwill_kept"]
    r = values["tv_limit_0.3"]
    tv, web = data.series.u.T
    expected = vidale_wolfe_goodwill(tv, delta, r, r / 0.3)
    expected = expected + vidale_wolfe_goodwill(web, delta, values["web"], torch.inf)
    assert torch.allclose(system.offset[0], expected, rtol=1e-10)
    log_p = filter_system(system, design.y, design.seen.tolist()).log_density
    law = joint(system._replace(offset=expected[None]), 0)[0]
    assert_close(log_p[0], law.log_prob(design.y))
    without = joint(system._replace(offset=0 * expected[None]), 0)[0]
    assert abs(float(without.log_prob(design.y)) - float(log_p)) > 0.1


def test_sales_limit_is_recovered_from_simulation():
    g = generator(5)
    u = 3 * uniform(g, 166, 2) ** 2
    goodwill = vidale_wolfe_goodwill(u[:, 0], 0.3, 6.0, 6.0 / 0.2)
    y = 20 + goodwill + 0.3 * normal(g, 166)
    whole = Sequence(
        "sales", None, y.view(1, -1, 1), None, ["y"], inputs=u, input_names=["tv", "web"]
    )
    posterior = fit_gibbs(split(whole, AHEAD, "end"), vidale_wolfe={"tv": [0.02, 0.2, 0.32]})
    check_selected(posterior, "tv_limit_0.2", "tv_limit_0.02", "tv_limit_0.32")


def test_limit_reached_by_one_spend_is_refused():
    with pytest.raises(
        ConfigMismatchError, match=r"vidale_wolfe: κ times the largest spend .*; lower κ"
    ):
        columns(vidale_wolfe={"tv": [0.25]})


def test_spend_figures_show_weeks_and_years():
    """Figures 1.2 and 1.6: a panel for each channel, and yearly totals."""
    dates = tuple(f"{2011 + t // 12}-{t % 12 + 1:02d}-01" for t in range(24))
    u = draw_uniform(24, 2)
    figures = spends(u, ["tv", "web"], dates)
    assert [axis.get_ylabel() for axis in figures["spends"].axes] == ["tv", "web"]
    heights = [bar.get_height() for bar in figures["spends_by_year"].axes[0].patches]
    expected = [*u[:12].sum(0).tolist(), *u[12:].sum(0).tolist()]
    assert_close(heights, expected)
    assert set(spends(u, ["tv", "web"], ())) == {"spends"}
