"""The oracle filter, with knowledge of the attack on observations."""

from dataclasses import replace

import pytest
import torch
from support.runs.configured import F64, component, double, generator, load, normal
from support.series.small_sequences import run_filter
from torch.testing import assert_close

from components.contracts.sequences import Observation
from components.series.filtering.guided import propose
from components.series.filtering.losses import (
    log_huber_likelihood,
)
from components.series.filtering.student_t_filter import log_student_t
from components.series.models.lgssm import NoiseScales
from runner.execution.rng import Streams


def linear(problem, rng, name="linear_gaussian_ssm"):
    return component("model", name).build(problem, rng)


def assert_oracle_is_bootstrap(data, rng, of_the_noise):
    """Assert that the oracle equals the bootstrap filter of a model that contains the noise."""
    actual = run_filter("oracle", data, linear(data, rng), seed=1, particles=200)
    exact = run_filter("bootstrap_filter", data, of_the_noise, seed=1, particles=200)
    assert_close(actual.mean, exact.mean, rtol=1e-8, atol=1e-8)
    assert_close(actual.log_normaliser, exact.log_normaliser, rtol=1e-9, atol=1e-9)
    assert actual.evidence


def test_oracle_is_bootstrap_filter_of_contaminated_model():
    problem, rng = load("wiener_velocity", replicates=3, n_steps=20)
    attacker = component("attacker", "gaussian_contamination", probability=0.2, sd=5.0)
    for data in (problem, problem.attack(attacker, rng)):
        assert_oracle_is_bootstrap(data, rng, linear(data, rng, "contaminated_ssm"))


def test_oracle_weighs_by_density_of_t_mixtures():
    problem, rng = load("wiener_velocity", replicates=2, n_steps=8)
    law = {"probability": 0.3, "df": 1.0, "scale": 20.0, "mode": "replace", "shared": False}
    attacked = problem.attack(component("attacker", "student_t_outliers", **law), rng)
    model = linear(attacked, rng)
    state = component("inference", "oracle", particles=10).init(model, attacked, rng)
    x = state.particles
    y = attacked.observations[:, 0]
    gap = y[:, None] - x @ model.H.T
    zero = torch.zeros(2, dtype=F64)
    clean = torch.distributions.MultivariateNormal(zero, model.Sigma).log_prob(gap)
    t = torch.distributions.StudentT(1.0, 0.0, 20.0).log_prob(gap).sum(-1)
    assert_close(state.model.log_observation(y, x, 1), (0.7 * clean.exp() + 0.3 * t.exp()).log())


def test_oracle_for_lost_observations_is_bootstrap_filter():
    """A loss independent of the values carries no information, so that the clean distribution is
    exact."""
    problem, rng = load("wiener_velocity", replicates=3, n_steps=20)
    lost = problem.attack(component("attacker", "missing", probability=0.4, run_length=2.0), rng)
    assert lost.missing.any()
    assert_oracle_is_bootstrap(lost, rng, linear(lost, rng))


LAWS = {
    "gaussian_contamination": {"sd": 5.0},
    "student_t_outliers": {"df": 1.0, "scale": 3.0, "mode": "replace", "shared": False},
    "multiplicative_exponential": {"scale": 5.0},
    "missing": {},
}


@pytest.mark.parametrize("name", [*LAWS, "huber", "joint", "product"])
def test_parameter_sets_are_weighed_as_one_by_one(name):
    """Σ [K, dy, dy] of unknown scales, as in filters inside particle MCMC and SMC²."""
    problem, rng = load("wiener_velocity", replicates=1, n_steps=5)
    law = {"law": "log_normal", "median": 1.0, "spread": 0.5}
    built = component(
        "model", "lgssm", unknown=NoiseScales(observation_sd=law, state_sd=None)
    ).build(problem, rng)
    theta = double([[-0.5], [0.0], [0.9]])
    g = generator(1)
    x = problem.states[:, 4:5] + normal(g, 3, 7, 4)

    def log_weights_of(k):
        model = built.at(theta[k])
        some = x[k]
        batch = Observation(5, problem.observations[:, 4].expand(len(some), -1))
        if name == "huber":
            return log_huber_likelihood(model, batch, some, 1.3)
        if name in ("joint", "product"):
            return log_student_t(model, batch, some, 2.0, name == "joint", None)
        attacked = problem.attack(
            component("attacker", name, probability=0.3, **LAWS[name]), Streams(0)
        )
        several = replace(attacked, observations=attacked.observations.expand(len(some), -1, -1))
        state = component("inference", "oracle", particles=7).init(model, several, Streams(0))
        return state.model.log_observation(batch.y, some, 5)

    together = log_weights_of(slice(None))
    for k in range(3):
        assert_close(together[k : k + 1], log_weights_of(slice(k, k + 1)))
    assert (together[0] != together[1]).all()


def test_proposals_for_parameter_sets_agree():
    """The linearised proposal is optimal if h is linear, also with a Q and Σ for each set."""
    problem, rng = load("wiener_velocity", replicates=3, n_steps=5)
    law = {"law": "log_normal", "median": 1.0, "spread": 0.5}
    built = component(
        "model", "lgssm", unknown=NoiseScales(observation_sd=law, state_sd=law)
    ).build(problem, rng)
    points = built.at(double([[-0.5, 0.3], [0.0, -1.0], [0.9, 0.5]]))
    g = generator(1)
    states_before = problem.states[:, 3:4] + normal(g, 3, 7, 4)
    batch = Observation(5, problem.observations[:, 4])
    a, b = (
        propose(points, batch, states_before, Streams(4), guide)
        for guide in ("optimal", "linearised")
    )
    assert_close(a.x, b.x)
    assert_close(a.log_ratio, b.log_ratio)
