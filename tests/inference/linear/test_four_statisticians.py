"""The four analyses of a linear regression: Bardenet's (1.2) to (1.5), coverage of credible
regions, choices of λ."""

import math
import statistics

import pytest
import torch
from support.runs.configured import F64, generator, load
from support.small.small_problems import component
from support.targets.exact_moments import regression_moments
from torch.testing import assert_close

from components.inference.linear import statistical_risk
from components.inference.linear.conjugate_posterior import region_radius
from components.maths.conjugate_regression import coefficients
from components.maths.least_squares import least_squares
from components.posteriors.decisions import Squared, to_samples

PARTS = ["maximum_likelihood", "statistical_risk", "conjugate_bayes", "ridge_path"]
NOISE = 2.0


def analyse(
    name,
    steps=4,
    noise=NOISE,
    data="linear_simulation",
    times=1.0,
    **settings,
):
    """Posterior of an analysis of a simulated regression, the problem and the model."""
    beta = [times, -0.5 * times, 0.0, 0.3 * times]
    keys = {"n_train": 15, "beta": beta, "noise": NOISE, "correlation": 0.6, "n_test": 20}
    problem, rng = load(data, **(keys if data == "linear_simulation" else {}))
    prior = {"prior_scale": 0.4, "noise_shape": 3.0, "noise_scale": 4.0, "intercept_scale": None}
    model = component("model", "linear_regression", noise=noise, **prior).build(problem, rng)
    inference = component("inference", name, **settings)
    state = inference.init(model, problem, rng)
    for _, batch in problem.batches(inference.requires.batch_kind, rng, 0, steps):
        state, info = inference.step(state, batch, rng)
        assert all(math.isfinite(float(v)) for v in info.values())
    return inference.posterior(state), problem, model


@pytest.mark.parametrize("noise", [NOISE, "learned"])
def test_confidence_regions_cover(noise):
    analysis, problem, _ = analyse("maximum_likelihood", noise=noise, simulations=5000)
    for level in analysis.inside:
        share, error = analysis.coverage(level)
        assert abs(share - level) < 4 * error
    assert analysis.data.is_simulated
    assert_close(analysis.data.beta, problem.truth["beta"])


def literal_risk(rule, beta, X, errors, penalty):
    """(1.2) as an average over data sets of L(θ, θ̂(y)) = ‖θ − θ̂(y)‖², one data set at a time."""
    eye = torch.eye(len(beta), dtype=F64)
    losses = []
    for e in errors:
        fit = least_squares(X, (X @ beta + e)[None], NOISE)
        estimate = statistical_risk.estimates(fit, eye, penalty)[rule, 0]
        losses.append(float(((estimate - beta) ** 2).sum()))
    return statistics.mean(losses)


def test_risk_functions_match_mean_losses():
    inference = component("inference", "statistical_risk", simulations=50, multiples=[0.5, 2.0])
    problem, rng = load("linear_simulation", n_train=12, beta=[1.0, 0.0, -1.0], noise=NOISE)
    model = component("model", "linear_regression", noise=NOISE, intercept_scale=None).build(
        problem, rng
    )
    state = inference.init(model, problem, rng)
    noise_state = rng.noise.get_state()
    state, _ = inference.step(state, problem.train, rng)
    rng.noise.set_state(noise_state)
    errors = state.data.errors(50, rng.noise)
    posterior = inference.posterior(state)
    for m, r in enumerate((0.5, 2.0)):
        for e in range(len(statistical_risk.ESTIMATORS)):
            literal = literal_risk(
                e, r * problem.truth["beta"], state.data.X, errors, model.penalty
            )
            assert float(posterior.risk[e, m]) == pytest.approx(literal)


def test_least_squares_has_constant_risk_and_is_dominated():
    analysis, *_ = analyse("statistical_risk", simulations=5000)
    exact = NOISE * float(analysis.data.fit.covariance.trace())
    # (1.3): the risk is the same in every case
    assert ((analysis.risk[0] - exact).abs() < 4 * analysis.error[0]).all()
    assert analysis.dominating_estimators["james_stein"]
    assert analysis.dominating_estimators["james_stein_plus"]
    assert not analysis.dominating_estimators["bayes"]  # far from 0 the prior is misleading


def test_bayes_rule_minimises_integrated_risk():
    analysis, _, model = analyse("statistical_risk", simulations=20_000)
    bayes = statistical_risk.ESTIMATORS.index("bayes")
    assert int(analysis.bayes_risk.argmin()) == bayes  # (1.4)
    # (1.5): E_y of the posterior expected loss σ² tr Λ⁻¹, which is the same for every y
    posterior_loss = NOISE * float(
        torch.linalg.inv(analysis.data.fit.gram + model.penalty.diag()).trace()
    )
    assert abs(float(analysis.bayes_risk[bayes]) - posterior_loss) < 4 * float(
        analysis.bayes_error[bayes]
    )
    assert float(analysis.bayes_risk[0]) - posterior_loss > 10 * float(analysis.bayes_error[0])
    assert_close(analysis.chosen, coefficients(analysis.data.X, analysis.data.y, model.penalty).m)


@pytest.mark.parametrize("noise", [NOISE, "learned"])
def test_credible_regions_have_nominal_coverage_over_prior(noise, monkeypatch):
    analysis, *_ = analyse("conjugate_bayes", noise=noise, simulations=5000, level=0.9, draws=10)
    error = (0.09 / analysis.n) ** 0.5
    assert abs(analysis.over_prior / analysis.n - 0.9) < 4 * error
    far, *_ = analyse(
        "conjugate_bayes", noise=noise, simulations=1000, level=0.9, draws=10, times=4.0
    )
    # at a β that is unlikely under the prior, intervals contain it less often
    assert far.at_beta / far.n < 0.8
    if noise == "learned":  # a region that ignores the uncertainty of σ² must fail the same check
        module = "components.inference.linear.conjugate_bayes.region_radius"
        monkeypatch.setattr(module, lambda level, dim, shape: region_radius(level, dim, None))
        mutant, *_ = analyse("conjugate_bayes", noise=noise, simulations=5000, level=0.9, draws=10)
        assert abs(mutant.over_prior / mutant.n - 0.9) > 4 * error


@pytest.mark.parametrize("noise", [NOISE, "learned"])
def test_draws_and_bayes_actions_match_posterior(noise):
    analysis, problem, model = analyse("conjugate_bayes", noise=noise, draws=10_000, simulations=1)
    first, second = regression_moments(model, problem.train)
    values = analysis.draws.values.flatten(0, 1)
    for power, exact in ((1, first), (2, second)):
        error = (values**power).std(0) / len(values) ** 0.5
        assert ((values**power).mean(0) - exact).div(error).abs().max() < 4
    belief = to_samples(analysis.draws)
    beta = type(belief)(belief.values[:2000, :4], torch.full((2000,), 1 / 2000, dtype=F64))
    spread = (
        analysis.scale**0.5 * analysis.known_coefficients.covariance.diagonal().sqrt() / 2000**0.5
    )
    assert ((Squared().act(beta) - analysis.known_coefficients.m).abs() < 5 * spread).all()
    rows = analysis.decisions()
    assert {row["loss"] for row in rows} == {
        *component("inference", "conjugate_bayes").decisions,
        "zero_one",
    }
    mean = next(row for row in rows if row["about"] == "x1" and row["loss"] == "squared")
    assert mean["action"] == pytest.approx(float(values[:, 0].mean()))
    assert mean["expected_loss"] == pytest.approx(float(values[:, 0].var(correction=0)))


def log_evidence(covariance, y):
    law = torch.distributions.MultivariateNormal(torch.zeros_like(y), NOISE * covariance)
    return float(law.log_prob(y))


def test_models_are_selected_by_evidence():
    analysis, *_ = analyse("conjugate_bayes", steps=1)
    X = analysis.data.X
    y = analysis.data.y
    eye = torch.eye(15, dtype=F64)
    inputs = {f"without x{j + 1}": [k for k in range(4) if k != j] for j in range(4)}
    inputs |= {"all inputs": [0, 1, 2, 3], "no input": []}
    for name, value in zip(analysis.candidates, analysis.log_evidence, strict=True):
        columns = X[:, inputs[name]]
        assert float(value) == pytest.approx(log_evidence(eye + 0.16 * columns @ columns.T, y))
    assert analysis.model_probabilities.sum() == pytest.approx(1)


def test_ridge_path_criteria_match_formulas():
    analysis, _, _ = analyse("ridge_path", steps=1, number=5)
    X = analysis.data.X
    y = analysis.data.y
    eye = torch.eye(4, dtype=F64)

    def ridge(X, y, penalty):
        return torch.linalg.solve(X.T @ X + penalty * eye, X.T @ y)

    for i, penalty in enumerate(analysis.penalties):
        assert_close(analysis.path[i], ridge(X, y, penalty))
        # the Bayes rule for squared loss under β ~ N(0, σ²/λ): ∫ by the product of two Gaussians
        joint = torch.linalg.inv(penalty / NOISE * eye + X.T @ X / NOISE) @ (X.T @ y / NOISE)
        assert_close(analysis.path[i], joint)
        left_out = []
        for n in range(len(y)):
            rest = torch.arange(len(y)) != n
            left_out.append(float((y[n] - X[n] @ ridge(X[rest], y[rest], penalty)) ** 2))
        evidence = log_evidence(torch.eye(15, dtype=F64) + X @ X.T / penalty, y)
        criteria = {"loo": statistics.mean(left_out), "evidence": evidence}
        for name, value in criteria.items():
            assert float(analysis.criteria[name][i]) == pytest.approx(value), name
    assert analysis.hkb == pytest.approx(4 * NOISE / float(analysis.data.fit.beta.square().sum()))
    assert analysis.risk(analysis.best) < analysis.risk(0.0)


@pytest.mark.parametrize("name", [*PARTS, "four_statisticians"])
@pytest.mark.parametrize("data", ["linear_simulation", "diabetes"])
def test_every_analysis_predicts_scores_and_draws(name, data):
    analysis, problem, _ = analyse(name, noise="learned", data=data)
    predictive = analysis.predict(problem.test.x, generator(0))
    assert predictive.mean.shape == (problem.test.x.shape[0], 1)
    if data == "diabetes":
        assert (predictive.mean - problem.test.y).square().mean() < 0.6 * float(
            problem.test.y.square().mean()
        )
    assert all(math.isfinite(v) for v in analysis.scores().values())
    assert all(figure.axes for figure in analysis.figures().values())


def test_tables_are_written(tmp_path):
    analysis, *_ = analyse("four_statisticians")
    names = [path.name for path in analysis.artefacts(tmp_path)]
    assert names == ["estimates.csv", "risks.csv", "decisions.csv"]
    assert list(analysis.figures()) == ["fisher", "wald", "savage", "hoerl_kennard"]
    table = analysis.estimates()
    assert list(table["coefficient"]) == ["x1", "x2", "x3", "x4"]
    assert list(table["true"]) == [1.0, -0.5, 0.0, 0.3]
