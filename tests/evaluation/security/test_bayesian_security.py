"""Security evaluation of victims that average over networks: scores, and the effect of the
expectation."""

from pathlib import Path

import pytest
import torch
from support.runs.configured import component, threat
from support.small.small_problems import train

from components.contracts.roles import Setting
from components.evaluation.assess import assess_security
from components.evaluation.security.curves import security_curve
from components.metrics.classification import expected_calibration_error
from runner.execution.execute import run
from runner.execution.rng import Streams

PGD = {"steps": 10, "step_size": 0.25}
SIZES = [0.05, 0.15]


@pytest.fixture(scope="module")
def ensemble():
    """Five networks for 8 × 8 digits, trained on few images."""
    setting = Setting(Path(), torch.device("cpu"), torch.float32, 1)
    problem = component("dataset", "digits", n_train=300, n_test=300).load(Streams(0), setting)
    method = component("inference", "deep_ensemble", lr=0.01)
    state, _ = train(method, component("model", "mlp", widths=[32, 32]), problem, 100)
    return problem, method.posterior(state)


def test_entropy_and_ece_are_scored_at_every_size(ensemble):
    problem, posterior = ensemble
    pgd = component("attacker", "pgd", **PGD)
    report = assess_security(problem, posterior, pgd, threat(pgd, SIZES), Streams(0), figures=False)
    scores = report.scores
    rows = report.tables["security_curve"].set_index("eps")
    for eps in (0.05, 0.15):
        assert scores[f"robust_entropy/eps={eps:.2f}"] == rows["entropy"][eps]
        assert scores[f"robust_ece/eps={eps:.2f}"] == rows["ece"][eps]
    assert scores["robust_ece"] == rows["ece"][0.15]
    probs = posterior.predict(problem.test.x, torch.Generator()).probs[:, 0]
    y = problem.test.y[:, 0]
    assert scores["entropy"] == pytest.approx(float(-(probs * probs.log()).sum(1).mean()))
    clean = expected_calibration_error(probs.amax(1), probs.argmax(1) == y)
    assert rows["ece"][0.0] == pytest.approx(float(clean))


def test_single_network_attack_overrates_ensemble(ensemble):
    """An attack along the gradient of one of five networks breaks fewer images of the ensemble."""
    problem, posterior = ensemble
    remaining = {}
    for expectation in ("predictive", "fresh_draws", "single_draw"):
        pgd = component("attacker", "pgd", **PGD, expectation=expectation)
        curve = security_curve(problem, posterior, pgd, threat(pgd, SIZES), Streams(0))
        remaining[expectation] = curve.rows.set_index("eps")["accuracy"]
        assert curve.verdict, curve.checks
    assert remaining["predictive"][0.0] == remaining["single_draw"][0.0]
    assert remaining["predictive"][0.15] <= remaining["fresh_draws"][0.15] + 0.01
    assert remaining["predictive"][0.15] < remaining["single_draw"][0.15] - 0.03, remaining


@pytest.mark.slow
@pytest.mark.parametrize(
    "victim",
    [[], ["inference=deep_ensemble", "model.prior_std=1.0"]],
    ids=["sgld", "deep_ensemble"],
)
def test_expectation_makes_attack_stronger(make_job, victim):
    results = {
        expectation: run(
            make_job(
                "+experiment=bayesian_security", *victim, f"attacker.expectation={expectation}"
            )
        )[1]
        for expectation in ("predictive", "single_draw")
    }
    for result in results.values():
        assert result["accuracy"][0] > 0.93
    key = "robust_accuracy/eps=0.15"
    assert results["predictive"][key][0] < results["single_draw"][key][0] - 0.02, results
    assert results["predictive"]["attack_checks_passed"] == [1.0]
