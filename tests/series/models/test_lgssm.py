"""Linear Gaussian series and models with any matrices, and batches of models."""

import pytest
import torch
from support.runs.configured import component, double, generator, load, normal
from support.series.small_sequences import run, sequence, system
from support.targets.known_targets import z_score
from torch.testing import assert_close

from components.contracts.capabilities import Parameterised
from components.errors import ConfigMismatchError
from components.series.models.linear_gaussian_ssm import LinearGaussianModule
from components.series.sequence import LinearGaussianSystem
from runner.execution.rng import Streams

SCALES = {
    "observation_sd": {"law": "half_normal", "scale": 1.0},
    "state_sd": {"law": "log_normal", "median": 0.4, "spread": 0.5},
}


def build(problem, **keys):
    from components.series.models.lgssm import NoiseScales

    unknown = NoiseScales(**({"observation_sd": None, "state_sd": None} | keys.pop("unknown", {})))
    return component("model", "lgssm", unknown=unknown, **keys).build(problem, Streams(0))


def test_series_have_the_moments_of_the_matrices():
    problem, _ = load("lgssm", 1, 3000, n_steps=4)
    keys = component("dataset", "lgssm").system()
    states = problem.states[0]
    off = problem.observations - states @ keys.H.T  # [R, T, 1], the same states for all replicates
    assert z_score(off.flatten(), 0.0).abs() < 4
    assert z_score(off.flatten().square(), 0.25).abs() < 4
    # [S, 4]
    first = torch.stack(
        [load("lgssm", seed, 1, n_steps=2)[0].states[0].flatten() for seed in range(600)]
    )
    prior = keys.A @ keys.P0 @ keys.A.T + keys.Q
    second = keys.A @ prior @ keys.A.T + keys.Q
    joint = torch.cat(
        [torch.cat([prior, prior @ keys.A.T], 1), torch.cat([keys.A @ prior, second], 1)]
    )
    products = first.unsqueeze(2) * first.unsqueeze(1)
    assert z_score(products.flatten(1), joint.flatten()).abs().max() < 4


def test_states_are_independent_of_the_number_of_replicates():
    lgssm = load("lgssm", 4, 1)[0]
    many = load("lgssm", 4, 5)[0]
    assert torch.equal(lgssm.states, many.states)
    assert torch.equal(lgssm.means, lgssm.states @ lgssm.system.H.T)


def test_given_matrices_replace_the_simulated_ones():
    problem = sequence(system(), 6, 2)
    same = run(component("inference", "kalman"), build(problem), problem, Streams(0))
    matrices = {name: matrix.tolist() for name, matrix in vars(system()).items()}
    problem.system = None
    written = run(component("inference", "kalman"), build(problem, **matrices), problem, Streams(0))
    assert torch.equal(same.log_normaliser, written.log_normaliser)
    with pytest.raises(ConfigMismatchError, match="does not provide"):
        build(problem)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"Sigma": [[-1.0, 0.0], [0.0, 1.0]]}, "model.Sigma: not positive definite"),
        ({"Q": [[1.0]]}, "model.Q: is 1 × 1, but must be dx × dx = 3 × 3"),
        (
            {"H": [[1.0, 0.0, 0.0]], "Sigma": [[1.0]]},
            "model.H: has 1 rows, but dataset=test observes 2 values",
        ),
    ],
)
def test_mismatched_matrices_are_named(keys, message):
    with pytest.raises(ConfigMismatchError, match=message):
        build(sequence(system(), 3, 1), **keys)


def several():
    """A batch of three models with different noise scales, and separate models."""
    problem = sequence(system(), 5, 3)
    module = build(problem, unknown=SCALES)
    theta = double([[-0.5, 0.2], [0.3, -0.4], [0.8, 0.9]])
    alone = []
    for sd in theta.exp():
        s = system()
        Sigma = s.Sigma * sd[0] ** 2 / s.Sigma.diagonal().mean()
        Q = s.Q * sd[1] ** 2 / s.Q.diagonal().mean()
        alone.append(LinearGaussianModule(LinearGaussianSystem(s.A, Q, s.H, Sigma, s.m0, s.P0)))
    return problem, module, theta, alone


def test_models_in_a_batch_equal_separate_ones():
    problem, module, theta, alone = several()
    g = generator(0)
    x, previous = normal(g, 2, 3, 7, 3)
    y = problem.observations[:, 0]
    together = module.at(theta)
    for k, single in enumerate(alone):
        rows = slice(k, k + 1)
        for ask in (
            lambda m, r: m.log_observation(y[r], x[r], 1),
            lambda m, r: m.log_transition(x[r], previous[r], 1),
            lambda m, r: m.log_proposal(x[r], y[r], previous[r], 1),
            lambda m, r: m.log_predictive(y[r], previous[r], 1),
        ):
            assert_close(ask(together, slice(None))[rows], ask(single, rows))
        integral = together.log_power_integral(x, 1, 1.2).expand(3, 7)
        assert_close(integral[k], single.log_power_integral(x, 1, 1.2).expand(7))
        for draw in (
            lambda m, g: m.transition(x, 1, g),
            lambda m, g: m.propose(y, previous, 1, g),
        ):
            drawn = [draw(m, generator(5)) for m in (together, single)]
            assert_close(drawn[0][k], drawn[1][k])
    bounds = [single.log_observation_bound(1) for single in alone]
    assert together.log_observation_bound(1) == pytest.approx(max(bounds))


def test_kalman_filters_in_a_batch_equal_separate_ones():
    problem, module, theta, alone = several()
    got = run(component("inference", "kalman"), module.at(theta), problem, Streams(0))
    for k, single in enumerate(alone):
        expected = run(component("inference", "kalman"), single, problem, Streams(0))
        for name in ("log_normaliser", "mean", "variance"):
            assert_close(getattr(got, name)[k], getattr(expected, name)[k])


def test_model_with_unknown_scales_has_those_of_the_prior():
    problem, module, _, _ = several()
    assert module.parameter_names == ["observation_sd", "state_sd"]
    assert module.Sigma.diagonal().mean().sqrt() == pytest.approx(0.67449, rel=1e-4)
    assert module.Q.diagonal().mean().sqrt() == pytest.approx(0.4)
    assert_close(module.Q / module.Q[0, 0], system().Q / system().Q[0, 0])
    assert Parameterised not in component("model", "linear_gaussian_ssm").capabilities()
    parameters = problem.system.parameters
    assert parameters["observation_sd"] == pytest.approx(
        float(system().Sigma.diagonal().mean().sqrt())
    )
