"""Views of a sequence: single observations up to its end, or the complete endless series."""

import pytest
import torch
from support.runs.configured import component, load
from support.series.small_sequences import sequence, system

from components.contracts.sequences import Observation, Series
from components.errors import ConfigMismatchError
from runner.errors import ConfigError
from runner.execution.assembly import load_problem, total_steps
from runner.execution.rng import Streams


def test_observations_arrive_singly_with_their_regressors():
    problem = sequence(system(), 5, 2)
    problem.regressors = torch.arange(10.0).view(5, 2)
    shown = list(problem.batches("observation", Streams(0), 1, 9))
    assert [step for step, _ in shown] == [2, 3, 4, 5]
    for step, data in shown:
        assert isinstance(data, Observation)
        assert data.t == step
        assert torch.equal(data.y, problem.observations[:, step - 1])
        assert torch.equal(data.x, problem.regressors[step - 1])
        assert data.missing is None
    assert problem.length("observation") == 5
    assert problem.describe()["regressors"] == "2"


def test_batch_series_is_complete_at_every_step():
    problem = sequence(system(), 5, 2)
    problem.observations[1, 2] = float("nan")
    shown = list(problem.batches("series", Streams(0), 3, 20))
    assert [step for step, _ in shown] == list(range(4, 21))
    assert all(
        isinstance(data, Series) and torch.equal(data.missing, problem.missing) for _, data in shown
    )
    assert problem.length("series") is None


def test_steps_beyond_a_series_are_sweeps_or_refused(make_job):
    sweeps = [
        "dataset=local_level",
        "model=local_level",
        "inference=series_gibbs",
        "dataset.n_steps=8",
        "steps=700",
    ]
    job = make_job(*sweeps)
    assert total_steps(job, load_problem(job, Streams(0))) == 700
    job = make_job(
        "dataset=local_level",
        "model=linear_gaussian_ssm",
        "inference=kalman",
        "dataset.n_steps=8",
        "steps=9",
    )
    with pytest.raises(ConfigError, match="has only 8"):
        total_steps(job, load_problem(job, Streams(0)))
    attacked = [
        "dataset=wiener_velocity",
        "dataset.n_steps=8",
        "model=linear_gaussian_ssm",
        "inference=kalman",
        "attacker=spoofing",
    ]
    job = make_job(*attacked, "steps=3")
    with pytest.raises(ConfigError, match=r"^steps=3: attacker=spoofing .* set steps=null or"):
        total_steps(job, load_problem(job, Streams(0)))
    job = make_job(*attacked, "debug=profile", "dataset.n_steps=30")
    assert total_steps(job, load_problem(job, Streams(0))) == 30
    job = make_job(*sweeps[:-1])
    with pytest.raises(ConfigError, match="as a whole series; set steps"):
        total_steps(job, load_problem(job, Streams(0)))


def test_model_with_known_parameters_assumes_nothing(make_job):
    keys = ["model.mu=0.0", "model.phi=0.5", "model.sigma=0.3"]
    job = make_job(
        "dataset=local_level", "model=stochastic_volatility", "inference=bootstrap_filter", *keys
    )
    problem, rng = load("local_level")
    assert job.model.build(problem, rng).phi == 0.5


@pytest.mark.parametrize(
    "name", ["linear_gaussian_ssm", "contaminated_ssm", "stochastic_volatility"]
)
def test_data_of_unknown_law_are_refused(name):
    problem, rng = load("local_level")
    problem.system = None
    with pytest.raises(ConfigMismatchError, match="does not provide"):
        component("model", name).build(problem, rng)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("local_level", "is multivariate"),
        ("stochastic_volatility", "is multivariate"),
        ("matern_sde", "model=matern_sde: supports only univariate series"),
        ("asymmetric_wiener", r"model=.* noise scales, .* dataset=wiener_velocity"),
    ],
)
def test_other_observations_are_refused(name, message):
    problem, rng = load("wiener_velocity", n_steps=5)
    with pytest.raises(ConfigMismatchError, match=message):
        component("model", name).build(problem, rng)


def test_oracle_requires_the_law_of_the_noise(make_job):
    problem, rng = load("wiener_velocity", n_steps=5)
    attacker = component("attacker", "gaussian_contamination")
    problem = problem.attack(attacker, rng)
    # an attacker without this law
    problem.attacker = component("attacker", "exponential_smoother")
    with pytest.raises(
        ConfigMismatchError,
        match=r"does not provide its noise distribution; .*gaussian_contamination",
    ):
        component("model", "contaminated_ssm").build(problem, rng)
