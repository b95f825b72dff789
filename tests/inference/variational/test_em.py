"""Expectation maximisation: modes and maxima agree with scipy, and the objective never
decreases."""

from dataclasses import replace

import pytest
import torch
from scipy import optimize
from support.runs.configured import component, load
from support.small.small_problems import advance
from support.targets.mean_field_families import F64, build_model, fit_factors, labels, log_joint
from torch.testing import assert_close

from components.errors import NumericalError
from runner.execution.rng import Streams


@pytest.mark.parametrize("penalised", [True, False])
def test_probit_ends_at_objective_maximum(penalised):
    problem = labels(n=30, D=2)
    model = build_model("probit_regression", problem, prior_scale=0.8)
    ascent = model.point_masses(penalised)

    def loss(beta):
        theta = torch.as_tensor(beta, dtype=F64)[None]
        value = (
            log_joint(model, theta, problem.train)
            if penalised
            else model.log_likelihood(theta, problem.train).sum(1)
        )
        return -float(value)

    factors = fit_factors(ascent, problem.train, 1500, starts=2)
    best = optimize.minimize(loss, [0.0, 0.0, 0.0])
    for start in range(2):
        assert factors["beta"][start].tolist() == pytest.approx(best.x.tolist(), abs=2e-4)
    assert ascent.objective(factors, problem.train).tolist() == pytest.approx(
        [-best.fun] * 2, abs=1e-8
    )


def test_em_point_is_mean_field_mean():
    """The point of a probit model is the mean of q(β), independent of q's other factors."""
    problem = labels(n=30, D=2)
    model = build_model("probit_regression", problem)
    mean = fit_factors(model.mean_field(), problem.train, 1000)["m"][0]
    assert_close(mean, fit_factors(model.point_masses(True), problem.train, 1000)["beta"][0])


def test_objectives_rise_and_best_start_is_returned():
    problem, rng = load("mixture_sim", n_train=80, n_test=40)
    inference = component("inference", "em", starts=5)
    state = inference.init(
        component("model", "gaussian_mixture", concentration=2.0).build(problem, rng), problem, rng
    )
    values = [state.objective]
    for _, batch in problem.batches("whole", rng, 0, 60):
        state, _ = inference.step(state, batch, rng)
        values.append(state.objective)
    assert (torch.stack(values).diff(dim=0) > -1e-9).all()
    posterior = inference.posterior(state)
    scores = problem.score(posterior, rng)
    assert scores["objective"] == state.objective.max()
    assert scores["ari"] > 0.9
    weights = [scores[f"mean/pi{k}"] for k in (1, 2, 3)]
    assert sum(weights) == pytest.approx(1)
    literal = posterior.model.log_likelihood(posterior.theta, problem.test).mean()
    assert scores["nlpp"] == pytest.approx(-float(literal), rel=1e-9)
    assert set(problem.draw(posterior, rng)) == {"bound_by_start", "clusters"}
    with pytest.raises(NumericalError, match="decreased"):
        inference.step(replace(state, objective=state.objective + 1), batch, Streams(0))


def test_labels_are_predicted_at_point():
    problem = labels(n=30, D=2)
    inference = component("inference", "em")
    rng = Streams(0)
    state = inference.init(build_model("probit_regression", problem), problem, rng)
    state, _ = advance(inference, state, problem, rng, 0, 20)
    posterior = inference.posterior(state)
    p = posterior.predict(problem.test.x, rng.noise).logits.softmax(-1)[0, :, 0, 1]
    beta = state.factors["beta"][int(state.objective.argmax())]
    assert_close(p, torch.special.ndtr(beta[0] + problem.test.x @ beta[1:]))
    assert {"accuracy", "nlpp", "objective", "mean/intercept"} <= set(problem.score(posterior, rng))
