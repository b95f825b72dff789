"""Variationally inferred sampling of the parameters of series with marginalised states, and one
step size per coordinate."""

import pytest
import torch
from support.runs.configured import (
    F64,
    component,
    compose_component,
    double,
    generator,
    load,
    normal,
)
from support.small.small_problems import check_resumed
from support.targets.refined_targets import (
    PRECISION,
    TARGET,
    gaussian,
    slope_of,
    train_refined,
    vis,
)

from components.errors import ConfigMismatchError
from components.inference.log_joint import value_and_gradient
from components.inference.refined.guides import StepSize
from components.inference.refined.kernels import KernelStep
from components.inference.refined.path import Begun, Refinement
from runner.execution.rng import Streams

SERIES = {
    "hmm": ("hmm_sim", {"states": 2}),
    "dlm": ("dlm_sim", {"trend": "autoregressive", "period": None}),
}


def load_series(name, n_steps=25):
    dataset, keys = SERIES[name]
    return component("model", name, **keys), load(dataset, n_steps=n_steps, n_ahead=3)[0]


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("steps", [0, 2])
def test_point_q0_climbs_log_joint(name, steps):
    """A literal loop: m ← m + lr ∇ log p(x, z_T), z_t = z_{t−1} + η ∇ log p(x, z_{t−1}), with Δz
    constant."""
    model, problem = load_series(name)
    keys = {
        "kernel": "sgd",
        "q0": "point",
        "differentiate": "fast",
        "optimizer": "sgd",
        "momentum": 0.0,
        "lr": 1e-3,
    }
    inference = vis(refine_steps=steps, eta=2e-3, start="drawn", draws=2, **keys)
    state, _, _ = train_refined(inference, model, problem, 3)
    built = model.build(problem, Streams(0))
    z = inference.init(built, problem, Streams(0)).module.mean.detach().clone()
    for _ in range(3):
        path_point = z[None]
        for _ in range(steps):
            path_point = (
                path_point + 2e-3 * value_and_gradient(built, path_point, problem.series)[1]
            )
        z = z + 1e-3 * value_and_gradient(built, path_point, problem.series)[1][0]
    assert torch.allclose(state.module.mean, z, atol=1e-10)
    for _ in range(steps):
        z = z + 2e-3 * value_and_gradient(built, z[None], problem.series)[1][0]
    posterior = inference.posterior(state)
    assert torch.allclose(posterior.draws, z.expand(2, 2, -1), atol=1e-10)
    value = value_and_gradient(built, z[None], problem.series)[0]
    assert posterior.scores() == {"objective": pytest.approx(float(value))}
    scores = problem.score(posterior, Streams(0))
    assert scores["log_likelihood"] == pytest.approx(
        float(built.log_likelihood(z[None], problem.series))
    )
    assert {"objective", "log_score"} <= set(scores)


@pytest.mark.parametrize("name", SERIES)
def test_without_steps_vis_is_variational_inference(name):
    model, problem = load_series(name)
    plain = compose_component(
        "inference", "gaussian_vi", covariance="diagonal", n_samples=2, draws=6
    )
    inference = vis(refine_steps=0, n_samples=2, draws=6)
    (vi_state, _, _), (state, _, _) = (
        train_refined(i, model, problem, 4) for i in (plain, inference)
    )
    assert torch.equal(state.module.mean, vi_state.module.mean)
    posterior = inference.posterior(state)
    expected = plain.posterior(vi_state)
    assert posterior.scores()["nelbo"] == pytest.approx(expected.scores()["nelbo"])


@pytest.mark.parametrize(
    "keys",
    [
        {"kernel": "sgld"},
        {"kernel": "svgd", "n_samples": 3},
        {"kernel": "sgd", "entropy": "jacobian", "eta": 1e-4},
    ],
)
def test_all_kernels_fit_series_and_resume(tmp_path, keys):
    model, problem = load_series("dlm", 12)
    inference = vis(draws=4, start="drawn", **({"eta": 1e-3} | keys))
    check_resumed(inference, model, problem, tmp_path, 5, 2)


# one step size per coordinate
ETAS = double([0.02, 0.11])


def begin(S=5):
    z = normal(generator(1), S, 1, 2)
    return Begun(z, torch.zeros(1, dtype=F64), gaussian, 1.0)


def test_each_coordinate_has_own_step_size():
    """z + diag(η) ∇log p(z), and noise of variance 2 η_d."""
    start_point = begin()
    refined, _ = Refinement(KernelStep("sgd", 1.0, 1, 1e-6), "initial", False)(
        start_point, ETAS, 1, torch.Generator()
    )
    assert torch.allclose(refined, start_point.z + ETAS * slope_of(start_point.z))
    noisy = begin(40_000)
    refined, entropy = Refinement(KernelStep("sgld", 1.0, 1, 1e-6), "joint", False)(
        noisy, ETAS, 1, generator(0)
    )
    spread = (refined - noisy.z - ETAS * slope_of(noisy.z))[:, 0].var(0)
    assert torch.allclose(spread, 2 * ETAS, rtol=4 * (2 / 40_000) ** 0.5)
    exact = torch.distributions.Normal(torch.zeros(2, dtype=F64), (2 * ETAS).sqrt()).entropy().sum()
    assert torch.allclose(entropy, exact.expand_as(entropy))


def test_jacobian_supports_step_size_per_coordinate():
    _, log_det = Refinement(KernelStep("sgd", 1.0, 1, 1e-6), "jacobian", True)(
        begin(), ETAS, 1, torch.Generator()
    )
    step = torch.eye(2, dtype=F64) - ETAS.diag() @ PRECISION
    assert torch.allclose(log_det, torch.linalg.slogdet(step).logabsdet.expand_as(log_det))


def test_step_sizes_are_learnt_separately():
    problem, _ = load("gaussian")
    state, _, _ = train_refined(vis(eta=[0.01, 0.02], learn_eta=True, lr=0.05), TARGET, problem, 20)
    assert state.sampler.eta.shape == (2,)
    assert len(set((state.sampler.eta.detach() / double([0.01, 0.02])).tolist())) == 2


def test_step_sizes_must_match_coordinates():
    with pytest.raises(
        ConfigMismatchError,
        match=r"inference\.eta: 3 step sizes .*; give one, or 2",
    ):
        StepSize([0.1, 0.2, 0.3], False, torch.zeros(2))
