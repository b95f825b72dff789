"""Forecasts of ``structural_gibbs`` with default settings, compared with maximum likelihood of the
same model by statsmodels, on series outside all suites of the arena: six from statsmodels, and
twenty simulated ones with twenty futures each. ``pytest -m slow -s`` prints the ratios."""

import math

import numpy as np
import pytest
import statsmodels.api as sm
import torch
from scipy import stats
from support.runs.configured import component
from support.small.small_problems import advance as advance_chains

from components.contracts.predictive import GaussianMixture
from components.metrics import diagnostics
from components.metrics.crps import crps
from components.series.forecasting import split
from components.series.sequence import Sequence
from runner.execution.rng import Streams

SWEEPS = 4000
FUTURES = 20
KEPT = 500  # draws used to score forecasts


def real_series():
    """Name, period, observed values, and one future [1, h]."""
    macro = sm.datasets.macrodata.load_pandas().data
    logs = {name: np.log(macro[name].to_numpy()) for name in ("realcons", "realinv", "cpi", "m1")}
    quarterly = logs | {"unemp": macro["unemp"].to_numpy()}
    elnino = sm.datasets.elnino.load_pandas().data.to_numpy()[-20:, 1:].ravel()
    for name, period, y in [*((k, 4, v) for k, v in quarterly.items()), ("elnino", 12, elnino)]:
        ahead = 2 * period
        yield name, period, y[:-ahead], y[None, -ahead:]


def simulated_series():
    """Local linear trends with a season of twelve, some of the scales 0."""
    rng = np.random.default_rng(20261129)
    for k in range(20):
        n = int(rng.choice([60, 96, 144, 200]))
        level, slope, season = np.exp(
            rng.uniform(np.log([0.03, 0.003, 0.02]), np.log([1, 0.1, 0.5]))
        )
        slope *= rng.random() > 0.4
        season *= rng.random() > 0.4
        start = (0.0, 0.1 * rng.standard_normal(), list(2 * rng.standard_normal(11)))
        scales = (1.0, level, slope, season)
        y, state = advance(start, scales, n, rng)
        futures = [advance(state, scales, 24, rng)[0] for _ in range(FUTURES)]
        yield f"simulated {k}", 12, np.array(y), np.array(futures)


def advance(state, scales, n, rng):
    level = state[0]
    slope = state[1]
    seasons = list(state[2])
    y = []
    for _ in range(n):
        noise = np.multiply(scales, rng.standard_normal(4))
        seasons.append(-sum(seasons[-11:]) + noise[3])
        y.append(level + seasons[-1] + noise[0])
        level += slope + noise[1]
        slope += noise[2]
    return y, (level, slope, seasons[-11:])


def bayes(y, period, future):
    """Forecast, and split R-hat."""
    values = torch.tensor(np.concatenate([y, future])).view(1, -1, 1)
    problem = split(Sequence("x", None, values, None, ["y"]), len(future), "end")
    rng = Streams(0)
    blocks = [
        component("block", "local_linear_trend"),
        component("block", "seasonal", period=period),
    ]
    model = component("model", "structural", blocks=blocks).build(problem, rng)
    gibbs = component("inference", "structural_gibbs", burn_in=1000)
    state, _ = advance_chains(gibbs, gibbs.init(model, problem, rng), problem, rng, 0, SWEEPS)
    posterior = gibbs.posterior(state)
    forecast = problem.forecast(posterior, rng)
    every = len(forecast.mu) // KEPT
    thinned = GaussianMixture(forecast.mu[::every], forecast.v[::every])
    return thinned, float(diagnostics.split_rhat(posterior.draws).max())


def maximum_likelihood(y, period, ahead):
    fitted = sm.tsa.UnobservedComponents(y, "local linear trend", seasonal=period)
    forecast = fitted.fit(disp=False, maxiter=500).get_forecast(ahead)
    return GaussianMixture(
        *(torch.tensor(x).view(1, -1, 1) for x in (forecast.predicted_mean, forecast.var_pred_mean))
    )


def scores(forecast, futures):
    """CRPS and absolute error, means over times and futures."""
    y = torch.tensor(futures).T  # [h, futures]
    wide = GaussianMixture(
        forecast.mu.repeat(1, 1, len(futures)), forecast.v.repeat(1, 1, len(futures))
    )
    return float(crps(wide, y).mean()), float((y - forecast.mean).abs().mean())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_default_priors_forecast_as_well_as_maximum_likelihood():
    ratios = []
    largest = []
    for name, period, y, futures in (*real_series(), *simulated_series()):
        forecast, rhat = bayes(y, period, futures[0])
        ours = scores(forecast, futures)
        theirs = scores(maximum_likelihood(y, period, futures.shape[1]), futures)
        ratios.append(np.log(np.divide(ours, theirs)))
        largest.append(rhat)
        print(
            f"{name:14} CRPS {ours[0] / theirs[0]:.3f}  MASE {ours[1] / theirs[1]:.3f}  R-hat {rhat:.3f}"
        )
    mean = np.mean(ratios, 0)
    error = stats.sem(ratios, 0)
    for word, m, e in zip(("CRPS", "MASE"), mean, error, strict=True):
        print(
            f"{word} over maximum likelihood's: {math.exp(m):.3f} ± {e:.3f}, {len(ratios)} series"
        )
    assert (mean < 2 * error).all()  # level, or ahead
    assert max(largest) <= 1.01
