"""Simulation-based calibration of the structural sampler: a correct sampler has uniform ranks,
broken ones do not."""

import numpy as np
import pytest
import torch
from support.runs.configured import component, generator
from support.series.structural_series import block, problem
from support.small.small_problems import advance

from components.errors import ConfigMismatchError
from components.evaluation.calibration.quantities import compute_quantities, rank
from components.evaluation.calibration.simulated import check_prior, simulate
from components.metrics.rank_uniformity import summarise, worst_p
from components.series.structural.simulate import draw_theta
from runner.execution.rng import Streams

WANDERS = {"guess": 0.4, "upper": 1.5, "df": 5.0}
CHOICE = {"expected_size": 1.0, "information": 1.0}
PROPER = {"scale": 1.0, "centre": 0.0, "upper": 1.5, "df": 5.0}
BURN_IN = 150
THINNING = 20
CHAINS = 33
DRAWS = 99


def level_and_regression():
    return [block("local_level", **WANDERS), block("regression", **CHOICE)]


def without_jacobian(sweep):
    """log σ is drawn with the density of σ²."""
    sweep.model.scales.df[:] += 2


def silent(sweep):
    """Coefficients and observations are drawn without noise."""
    numbers = sweep.numbers

    def without_noise(*args, **keys):
        drawn = numbers(*args, **keys)
        for normals in (drawn.slab.z, drawn.columns.z, drawn.states.errors):
            normals[:] = 0.0
        return drawn

    vars(sweep).update(numbers=without_noise)


def all_ranks(blocks, data_sets, broken=None, burn_in=BURN_IN, thinning=THINNING, **keys):
    template = problem(times=20, ahead=2, missing=(4, 11))
    settings = component("model", "structural", blocks=blocks, **PROPER | keys)
    built = settings.build(template, Streams(0))
    gibbs = component(
        "inference", "structural_gibbs", chains=CHAINS, burn_in=burn_in, thinning=thinning
    )
    rows = []
    for r in range(data_sets):
        rng = Streams(0, r)
        simulated = simulate(built, template, 2, rng)
        model = settings.build(simulated.problem, rng)
        check_prior(built, model, simulated.theta, "structural")
        state = gibbs.init(model, simulated.problem, rng)
        if broken is not None:
            broken(state.sweeps)
        steps = burn_in + DRAWS // CHAINS * thinning
        state, _ = advance(gibbs, state, simulated.problem, rng, 0, steps)
        quantities = compute_quantities(simulated, gibbs.posterior(state), DRAWS, rng.evaluation)
        rows.append({name: rank(draws, rng.evaluation) for name, draws in quantities.items()})
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def worst(ranks):
    rng = np.random.default_rng(0)
    return worst_p([summarise(values, DRAWS, 10, rng) for values in ranks.values()])


@pytest.mark.parametrize(
    ("blocks", "keys", "last"),
    [
        (
            [block("nerlove_arrow", **WANDERS, **CHOICE), block("regression", **CHOICE)],
            {},
            "log likelihood",
        ),
        (level_and_regression(), {"errors": "student_t"}, "y in 2"),
        ([block("autoregressive", lags=2, **WANDERS)], {}, "log likelihood"),
    ],
)
def test_every_structure_has_ranks(blocks, keys, last):
    ranks = all_ranks(blocks, 1, burn_in=2, thinning=1, **keys)
    assert [*ranks][-1] == last
    assert {"observation_sd", "y in 1", "y in 2"} <= set(ranks)
    assert all(values.min() >= 0 and values.max() <= DRAWS for values in ranks.values())


def test_prior_draws_follow_its_definition():
    """θ* of the level and regression: half of the law of 1/σ², and the share of included
    columns."""
    built = component("model", "structural", blocks=level_and_regression(), **PROPER).build(
        problem(), Streams(0)
    )
    structure = built.structure
    g = generator(0)
    theta = torch.cat([draw_theta(structure, g) for _ in range(2000)])
    for j, scale in enumerate(structure.scales):
        assert theta[:, j].max() <= scale.upper
        gamma = 1 / theta[:, j].square() * scale.df / 2 * scale.guess**2
        least = scale.df / 2 * (scale.guess / scale.upper) ** 2  # Gamma(df/2), cut at the limit
        law = torch.distributions.Gamma(
            torch.tensor(scale.df / 2).double(), torch.tensor(1.0).double()
        )
        below = law.cdf(torch.tensor(least).double())
        assert float((law.cdf(gamma.median()) - below) / (1 - below)) == pytest.approx(
            0.5, abs=0.05
        )
    share = float((theta[:, 2:] != 0).double().mean())
    assert share == pytest.approx(float(structure.inclusion.mean()), abs=0.03)


def test_prior_in_units_of_the_series_is_refused():
    template = problem()
    settings = component("model", "structural", blocks=[block("local_level")], upper=1.2, df=5.0)
    built = settings.build(template, Streams(0))
    simulated = simulate(built, template, 1, Streams(0))
    after = settings.build(simulated.problem, Streams(0))
    with pytest.raises(ConfigMismatchError, match=r"set model\.scale=1 model\.centre=0"):
        check_prior(built, after, simulated.theta, "structural")


@pytest.mark.slow
def test_correct_sampler_has_uniform_ranks_unlike_a_broken_one():
    assert worst(all_ranks(level_and_regression(), 150)) > 1e-3
    assert worst(all_ranks(level_and_regression(), 150, silent)) < 1e-3


@pytest.mark.slow
def test_marginal_draws_need_their_jacobian_for_uniform_ranks():
    trend = [block("local_linear_trend", **WANDERS)]
    assert worst(all_ranks(trend, 150, thinning=5)) > 1e-3
    assert worst(all_ranks(trend, 150, without_jacobian, thinning=5)) < 1e-6
