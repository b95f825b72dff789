"""The laboratory: findings for estimators with known bias and variance, without effect on the
training."""

import itertools

import pandas as pd
import pytest
import torch
from support.runs.configured import component, compose_component, normal
from support.small.small_bernoulli import binary_rows, every_z, small_dvae
from support.small.small_problems import (
    advance,
    assert_same_state,
    real,
    tensors,
    train,
    train_and_resume,
)
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence
from torch.testing import assert_close

from components.gradients.pathwise import sarah
from components.gradients.pathwise.snapshot import gradient_at
from components.inference.log_joint import log_joint
from components.inference.variational.laboratory.frozen import Frozen
from runner.errors import ConfigError
from runner.execution.rng import Streams

LINEAR = component("model", "linear_regression", noise=0.25, prior_scale=1.2, intercept_scale=3.0)
TRAIN = {
    "name": "gaussian_vi",
    "covariance": "diagonal",
    "noise": "rows",
    "draws": 10,
    "initial_std": 0.3,
}
LEARNER = {"name": "context_free_cv", "solver": "moving_average", "decay": 0.9}


def laboratory(**changes):
    small = {
        "at": [0, 3],
        "iterations": [2, 30],
        "draws": 60,
        "batches": 2,
        "train": TRAIN,
        "gradients": ["reparam", LEARNER],
    }
    return compose_component("inference", "gradient_variance", **small | changes)


def regression():
    return real(n=24, n_tasks=1, missing=0.0, batch_size=6)


# in a run
def test_laboratory_leaves_training_unchanged():
    problem = regression()
    inference = laboratory()
    reference, _ = train(inference.train, LINEAR, problem, 6)
    watched, _ = train(inference, LINEAR, problem, 6)
    assert_same_state(reference, watched.fitting)
    assert watched.findings.scores
    assert watched.findings.curves


def scores(inference, steps=4):
    problem = regression()
    state, _ = train(inference, LINEAR, problem, steps)
    return inference.posterior(state).scores()


def test_variance_falls_with_number_of_samples():
    gradients = ["reparam", {"name": "reparam", "n_samples": 4}]
    table = scores(laboratory(gradients=gradients, draws=150, iterations=[]))
    for t in (0, 3):
        assert table[f"trace_ratio/reparam n_samples=4/{t}"] == pytest.approx(0.25, rel=0.25)
        assert table[f"trace_ratio/reparam n_samples=1/{t}"] == 1.0
        assert table[f"bias_p/reparam n_samples=4/{t}"] > 0.01
    kinds = {name.split("/")[0] for name in table}
    assert {"milliseconds", "variance_seconds", "norm_ratio", "minibatch_share"} <= kinds


def test_best_ratio_is_below_learnt_ratio():
    table = scores(laboratory(best_orders=[1, 2], best_draws=400))
    for t in (0, 3):
        free, linear, quadratic, learnt = (
            table[f"{name}/{t}"]
            for name in (
                "best_context_free/order 1",
                "best_per_row/order 1",
                "best_per_row/order 2",
                "trace_ratio/context_free_cv",
            )
        )
        assert quadratic < linear < free < 1.05 * learnt


def test_estimators_learn_alongside_training():
    problem = regression()
    inference = laboratory(iterations=[], at=[3])
    state_before, _ = train(inference, LINEAR, problem, 2)
    after, _ = train(inference, LINEAR, problem, 4)
    assert after.learnt[1].weight > state_before.learnt[1].weight > 0
    assert not after.findings.curves
    assert_same_state(train(inference.train, LINEAR, problem, 4)[0], after.fitting)


@pytest.mark.parametrize("sign", [1, 0, -1])
def test_distance_reveals_broken_recursion(sign, monkeypatch):
    """SARAH between two restarts; with sign 0 or −1 its recursion omits or adds the gradient at the
    previous parameters."""
    monkeypatch.setattr(sarah, "gradient_at", lambda *args: sign * gradient_at(*args))
    gradients = ["reparam", {"name": "sarah", "restart": 8}]
    keys = {"gradients": gradients, "iterations": [], "at": [13], "trajectories": 8, "draws": 20}
    table = scores(laboratory(**keys), 13)
    assert table["mse/reparam/13"] == pytest.approx(table["total/reparam/13"], rel=0.5)
    ratio = table["mse_ratio/sarah/13"]
    if sign == 1:
        # the error of the restart, which the variance given the state omits
        assert 10 * table["trace_ratio/sarah/13"] < ratio < 0.2
    else:
        assert ratio > 5


TIMES = ("milliseconds", "total_seconds", "variance_seconds")


@pytest.mark.parametrize("iterations", [[], [2, 5]])
def test_resumed_run_is_identical(iterations, tmp_path):
    problem = regression()
    trajectories = 0 if iterations else 2
    inference = laboratory(iterations=iterations, at=[1, 4], draws=4, trajectories=trajectories)
    whole, _ = train(inference, LINEAR, problem, 5)
    repeat, _ = train_and_resume(inference, LINEAR, problem, 5, 2, tmp_path)
    untimed, others = (
        {k: v for k, v in state.findings.scores.items() if k.split("/")[0] not in TIMES}
        for state in (whole, repeat)
    )
    assert untimed == others
    assert whole.findings.curves == repeat.findings.curves
    assert_close(tensors(whole), tensors(repeat), rtol=0, atol=0)


def test_parameters_of_p_are_excluded():
    """The gradient with respect to p has the same variance for all estimators of Bernoulli models."""
    problem = binary_rows()
    model = small_dvae(problem)
    selected = Frozen(model, problem, 0, Streams(0), True).chosen
    names = [name for name, _ in model.named_parameters()]
    assert {name.split(".")[0] for name in itertools.compress(names, selected)} == {"down"}


def test_laboratory_has_table_and_figure(tmp_path):
    inference = laboratory(draws=4)
    state, _ = train(inference, LINEAR, regression(), 4)
    posterior = inference.posterior(state)
    posterior.artefacts(tmp_path)
    table = pd.read_csv(tmp_path / "tables/gradient_variance.csv")
    row = table.query("score == 'trace_ratio' and gradient == 'context_free_cv' and step == 3")
    assert list(row.iteration.fillna(-1)) == [-1, 2, 30]
    first, _, last = row.value
    assert first == last
    assert first == pytest.approx(posterior.scores()["trace_ratio/context_free_cv/3"])
    (figure,) = (f for name, f in posterior.figures().items() if name == "gradient_variance")
    assert sum(axis.axison for axis in figure.axes) == 4
    assert isinstance(posterior.predict(regression().test.x, torch.Generator()).mean, Tensor)


# VarGrad's coefficient and the evidence
def test_corrections_match_enumerated_model():
    """δ_i/E a = Cov(f, h_i²)/(Var(h_i) E f), eq. (5.14), over all 64 values of z, for each row
    separately."""
    problem = binary_rows()
    model = small_dvae(problem)
    corrections = Frozen(model, problem, 0, Streams(0), True).corrections(1, 20_000)
    named = dict(model.named_parameters())
    z = every_z()
    for row in range(problem.n):
        batch = problem.train.part(slice(row, row + 1), 2.0)
        log_q = model.log_q(batch, z)[:, 0]
        f = (log_q - model.log_joint(batch, z)[:, 0]).detach()
        q = log_q.exp().detach()
        for name, ratio in corrections.items():
            slopes = [
                torch.autograd.grad(log_density, named[name], retain_graph=True)[0]
                for log_density in log_q
            ]
            h = torch.stack(slopes)  # [64, D]
            exact = (q * (f - q @ f)) @ h.square() / (q @ h.square()) / (q @ f)
            assert_close(ratio[row], exact, atol=0.06, rtol=0.06, msg=name)


def test_global_q_corrections_match_full_bound():
    """f = log q(θ) − log p(y, θ) of all rows together, with literal scores ε/σ and ε² − 1."""
    problem = real(n=24, n_tasks=1, missing=0.0)
    state, rng = train(laboratory(train=TRAIN | {"noise": "shared"}).train, LINEAR, problem, 3)
    q = state.module
    corrections = Frozen(q, problem, 0, Streams(0), False).corrections(1, 40_000)
    with torch.no_grad():
        noise = normal(rng.evaluation, 40_000, len(q.mean))
        theta = q.transform(noise)
        f = q.log_density(theta) - log_joint(q.target.model, theta, problem.train)
        for name, h in (("mean", noise / q.log_std.exp()), ("log_std", noise**2 - 1)):
            exact = (f - f.mean()) @ h.square() / h.square().sum(0) / f.mean()
            assert corrections[name].shape == (1, len(q.mean))
            assert_close(corrections[name][0], exact, rtol=0.1, atol=0.03)


def test_kl_divergence_matches_normals():
    problem = regression()
    inference = laboratory(evidence_particles=50, correction_draws=50, draws=4, iterations=[1])
    state, _ = train(inference, LINEAR, problem, 3)
    model = LINEAR.build(problem, Streams(0))
    q = state.fitting.module
    table = state.findings.scores
    coefficients = model.coefficients(problem.train)
    p = MultivariateNormal(coefficients.m, model.noise * coefficients.covariance)
    exact = float(kl_divergence(MultivariateNormal(q.mean, q.covariance), p).detach())
    assert [table["kl/3"], table["kl_by_q/3"]] == pytest.approx([exact] * 2, rel=0.15)
    root = table["kl/3"] ** 0.5
    assert table["bound_denominator/3"] == pytest.approx(abs(root - table["log_evidence"] / root))
    assert table["correction_q95/all/3"] >= table["correction/all/3"] > 0
    assert set(inference.posterior(state).figures()) >= {"gradient_variance", "corrections"}


# mistakes
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"train": "map"},
            "train: map .*; use vi or gaussian_vi",
        ),
        ({"at": [5, 3]}, r"at: \[5, 3\] must increase"),
        ({"iterations": [5, 5]}, r"iterations: \[5, 5\] must increase"),
        ({"trajectories": 2}, "during the training; set iterations="),
        ({"draws": 1}, "draws"),
        ({"gradients": []}, "gradients"),
    ],
)
def test_invalid_keys_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        laboratory(**changes)


# the estimator of the key ``gradient``
def test_training_resumes_with_gradient_after_last_freeze():
    problem = regression()
    inference = laboratory(gradients=["reparam"], gradient=LEARNER, iterations=[], at=[3], draws=8)
    frozen, rng = train(inference, LINEAR, problem, 3)
    after, _ = train(inference, LINEAR, problem, 6)
    reference, plain = (train(inference.train, LINEAR, problem, n)[0].module.mean for n in (3, 6))
    assert torch.equal(frozen.fitting.module.mean, reference)
    assert frozen.fitting.gradient.weight > 0  # learned during the training
    train_method = inference.train.model_copy(update={"gradient": inference.gradient})
    state, _ = advance(train_method, frozen.fitting, problem, rng, 3, 6)
    assert torch.equal(after.fitting.module.mean, state.module.mean)
    assert not torch.equal(after.fitting.module.mean, plain)


def test_gradient_scores_match_listed_estimator():
    keys = {"iterations": [], "at": [3], "draws": 40}
    named = scores(laboratory(**keys))
    table_alone = scores(laboratory(gradients=["reparam"], gradient=LEARNER, **keys))
    for score in ("trace", "trace_ratio", "total", "minibatch_share"):
        expected = named[f"{score}/context_free_cv/3"]
        assert table_alone[f"{score}/gradient/3"] == pytest.approx(expected, rel=0.05), score
