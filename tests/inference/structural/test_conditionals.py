"""Draws of one sweep, for thousands of chains at the same state, compared with the exact
conditionals."""

from dataclasses import replace

import pytest
from scipy import stats
from support.runs.configured import component, double
from support.series.structural_series import block, model, problem, smooth_states

from runner.execution.rng import Streams

C = 4000
BLOCKS = [
    block("local_linear_trend", df=5.0, guess=0.3),
    block("seasonal", period=4, df=3.0, guess=0.2),
]


@pytest.fixture(scope="module")
def run_sweep():
    """A sweep of a trend with seasons and missing observations: start, end, and states."""
    data = problem(missing=(3, 8))
    rng = Streams(0)
    built = model(*BLOCKS, of=data, df=4.0)
    gibbs = component("inference", "structural_gibbs", chains=C, scheme="gibbs")
    state = gibbs.init(built, data, rng)
    sigma = double([0.9, 0.5, 0.2, 0.3])
    place = replace(state.place, sigma=sigma.expand(C, -1).clone())
    sweeps = state.sweeps
    after, alpha, _ = sweeps.advance(place, sweeps.numbers(1, C, rng.noise, twice=False))
    return built, data, sigma, after, alpha


def test_states_have_smoother_moments(run_sweep):
    built, data, sigma, _, alpha = run_sweep
    design = built.design(data.series)
    mean, V = smooth_states(built.system(sigma.unsqueeze(0), design), design)
    for t in (0, 3, 12, 23):
        for i in (0, 1, 2):
            law = stats.norm(float(mean[t, i]), float(V[t, i, i]) ** 0.5)
            assert stats.kstest(alpha[:, t, i].numpy(), law.cdf).pvalue > 1e-4, (t, i)


@pytest.mark.parametrize("j", [0, 1, 2, 3])
def test_deviations_are_inverse_gamma_given_states(run_sweep, j):
    """(df guess² + Σ r²)/(2 σ²) ~ Gamma((df + count)/2) for any states, with r the noise of a state
    or of the observations."""
    built, data, _, after, alpha = run_sweep
    structure = built.structure
    design = built.design(data.series)
    scale = structure.scales[j]
    if j == 0:
        noise = (design.y - (design.F * alpha).sum(2))[:, design.seen]
    else:
        moves = alpha[:, 1:] - (structure.G @ alpha[:, :-1].unsqueeze(3)).squeeze(3)
        noise = moves[..., list(scale.states)].flatten(1)
    half = 0.5 * (scale.df * scale.guess**2 + noise.square().sum(1))
    gamma = (half / after.sigma[:, j].square()).numpy()
    law = stats.gamma(0.5 * (scale.df + noise.shape[1]))
    assert scale.upper > after.sigma[:, j].max()
    assert stats.kstest(gamma, law.cdf).pvalue > 1e-4
