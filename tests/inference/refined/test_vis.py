"""Variationally inferred sampling of parameters: T = 0 is variational inference, and the effects of
refinement."""

from functools import partial

import pytest
import torch
from support.runs.configured import F64, component, compose_component, draw_normal, load
from support.small.small_problems import classes
from support.small.small_problems import train as train_labels
from support.targets.refined_targets import TARGET, train_refined, vis

from components.errors import NumericalError
from components.inference.refined.guides import sample_parameter_guide
from runner.execution.rng import Streams

LOGISTIC = component("model", "logistic_regression")


gaussian_vi = partial(compose_component, "inference", "gaussian_vi", covariance="diagonal")


# T = 0
@pytest.mark.parametrize("entropy", ["initial", "gaussian", "jacobian"])
def test_without_steps_vis_is_variational_inference(entropy):
    problem, _ = load("funnel", dim=3)
    vi_state, of_vi, _ = train_refined(gaussian_vi(n_samples=3), TARGET, problem, 20)
    inference = vis(refine_steps=0, kernel="sgd", entropy=entropy, n_samples=3, draws=501)
    state, info, _ = train_refined(inference, TARGET, problem, 20)
    assert info == of_vi
    assert torch.equal(state.module.mean, vi_state.module.mean)
    assert torch.equal(state.module.log_std, vi_state.module.log_std)
    draws = inference.posterior(state).draws
    assert torch.equal(draws, gaussian_vi(draws=501).posterior(train_again(problem, 501)).draws)
    assert draws.shape == (2, 501, 3)


def train_again(problem, draws):
    return train_refined(gaussian_vi(n_samples=3, draws=draws), TARGET, problem, 20)[0]


@pytest.mark.parametrize("batch_size", [None, 16])
def test_labelled_minibatches_match_variational_inference(batch_size):
    problem = classes(n_classes=2, batch_size=batch_size)
    other = gaussian_vi(n_samples=2, draws=40)
    this = vis(refine_steps=0, n_samples=2, draws=40)
    (vi_state, rng), (state, _) = (
        train_labels(inference, LOGISTIC, problem, 15) for inference in (other, this)
    )
    assert torch.equal(state.module.mean, vi_state.module.mean)
    posterior, expected = (i.posterior(s) for i, s in ((this, state), (other, vi_state)))
    assert torch.equal(posterior.draws, expected.draws)
    assert posterior.scores() == expected.scores()
    assert problem.score(posterior, rng)["nelbo"] == expected.scores()["nelbo"]


@pytest.mark.parametrize("differentiate", ["full", "fast"])
def test_step_follows_chosen_gradient(differentiate):
    """On N(0, C) the gradient in m is A^T ∇log p(z_T) with A = I − η C⁻¹, or ∇log p(z_T) with
    constant steps."""
    problem, rng = load("gaussian")
    still = {"optimizer": "sgd", "momentum": 0.0, "lr": 1e-30, "initial_std": 1e-9}
    steps = {"kernel": "sgd", "refine_steps": 2, "eta": 0.05, "differentiate": differentiate}
    inference = vis(covariance="full", **steps, **still)
    model = TARGET.build(problem, rng)
    state = inference.init(model, problem, rng)
    mean = state.module.mean
    mean.data = torch.linspace(0.5, 1.0, len(mean), dtype=F64)
    point = mean.detach().clone()
    inference.step(state, None, rng)
    slope = torch.func.grad(lambda x: model.log_prior(x[None]).sum())
    z = point + 0.05 * slope(point)
    z = z + 0.05 * slope(z)
    A = torch.eye(len(point), dtype=F64) + 0.05 * torch.func.jacrev(slope)(point)
    expected = slope(z) if differentiate == "fast" else torch.linalg.matrix_power(A, 2) @ slope(z)
    assert torch.allclose(-mean.grad, expected, atol=1e-6)
    assert not torch.allclose(A @ slope(z), slope(z), rtol=0.02)


# beyond
def test_minibatch_target_is_scaled_to_all_rows():
    problem = classes(n_classes=2, batch_size=16)
    model = LOGISTIC.build(problem, Streams(0))
    theta = 0.3 * draw_normal(4, 2, model.dim)
    q = torch.nn.Module()
    q.transform = lambda noise: noise
    q.entropy = torch.zeros((), dtype=F64)
    batch = problem.train.part(slice(0, 16), 60 / 16)
    log_target = sample_parameter_guide(q, model, batch, theta).target(theta)
    for i in range(4):
        for b in range(2):
            row = theta[i, b : b + 1]
            expected = model.log_prior(row) + 60 / 16 * model.log_likelihood(row, batch).sum()
            assert torch.allclose(log_target[i, b], expected)


def test_point_q0_finds_maximum_a_posteriori():
    """A Dirac delta without steps: the objective is the log joint and has no other name."""
    problem = classes(n_classes=2)
    inference = vis(q0="point", refine_steps=0, lr=0.05, draws=3)
    state, _ = train_labels(inference, LOGISTIC, problem, 400)
    model = state.model
    theta = state.module.mean.detach()[None].requires_grad_()
    value = model.log_prior(theta) + model.log_likelihood(theta, problem.train).sum()
    (gradient,) = torch.autograd.grad(value.sum(), theta)
    assert gradient.abs().max() < 0.05
    posterior = inference.posterior(state)
    assert posterior.scores() == {"objective": pytest.approx(float(value.detach()), abs=1e-9)}
    assert torch.allclose(posterior.draws, theta.detach().expand(2, 3, -1))


@pytest.mark.parametrize(
    ("batch_size", "steps", "bound"), [(None, 2, True), (16, 2, False), (16, 0, True)]
)
def test_minibatch_parameters_report_objective(batch_size, steps, bound):
    problem = classes(n_classes=2, batch_size=batch_size)
    keys = {"kernel": "sgd", "entropy": "jacobian", "eta": 1e-3, "n_samples": 2, "draws": 10}
    _, info, _ = train_refined(vis(refine_steps=steps, **keys), LOGISTIC, problem, 1)
    assert ("elbo" in info, "objective" in info) == (bound, not bound)


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        ({"kernel": "sgd", "entropy": "jacobian"}, "elbo"),
        ({"kernel": "sgd", "entropy": "jacobian", "infer_steps": 0}, "elbo"),
        ({"kernel": "sgd"}, "objective"),
        ({"entropy": "joint"}, "objective"),
        ({"kernel": "sgd", "entropy": "gaussian"}, "objective"),
        ({"kernel": "sgd", "entropy": "fokker_planck", "n_samples": 3}, "objective"),
        ({"kernel": "hmc"}, "objective"),
    ],
)
def test_only_bounds_are_called_bounds(keys, name):
    inference = vis(draws=10, **keys)
    state, info, _ = train_refined(inference, TARGET, load("gaussian")[0], 1)
    assert info.keys() & {"elbo", "objective"} == {name}
    scores = {"elbo": "nelbo", "objective": "objective"}
    assert set(inference.posterior(state).scores()) == {scores[name]}
    assert float(info[name]) == pytest.approx(float(info["log_joint"] + info["entropy"]))


def test_step_size_is_learnt():
    problem, _ = load("gaussian")
    keys = {"eta": 0.01, "refine_steps": 2, "lr": 0.05}
    learnt, fixed = (
        train_refined(vis(learn_eta=flag, **keys), TARGET, problem, 30) for flag in (True, False)
    )
    assert float(learnt[1]["eta"]) != pytest.approx(0.01, rel=0.1)
    assert float(fixed[1]["eta"]) == pytest.approx(0.01)
    assert not torch.equal(fixed[0].module.mean, learnt[0].module.mean)


def test_draws_are_refined_in_training_sized_sets():
    """Draws of a set do not depend on how many other sets there are."""
    problem, _ = load("gaussian")

    def draws(n):
        inference = vis(kernel="svgd", n_samples=4, draws=n)
        return inference.posterior(train_refined(inference, TARGET, problem, 3)[0]).draws

    assert torch.equal(draws(8), draws(8))
    assert draws(6).shape[1] == 6


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"entropy": "jacobian", "eta": 30.0}, r"inference\.eta"),
        ({"eta": 1e200, "refine_steps": 3}, r"lower inference\.eta"),
    ],
)
def test_large_steps_are_refused(keys, message):
    with pytest.raises(NumericalError, match=message):
        train_refined(vis(kernel="sgd", **keys), TARGET, load("gaussian")[0], 5)
