"""The security evaluation of filters: its report, and checks that detect faulty attacks."""

import dataclasses

import pytest
import torch
from support.runs.configured import double
from support.series.small_sequences import run
from support.small.small_filters import problem, spoofer, victim
from support.targets.known_targets import z_score

from components.errors import ConfigMismatchError, IncompleteResultWarning
from components.evaluation.security.filter_curves import assess_filter, doubling_budget
from components.evaluation.security.threat import Threat
from components.metrics.names import score_names
from components.series.attackers.spoofing import Spoofing
from runner.execution.rng import Streams

THREAT = Threat("l2", (0.0, 1.0, 3.0, 9.0))


def assess_run(attacker, p=None, threat=THREAT, inference="kalman", figures=False, **keys):
    p = problem(25, 8) if p is None else p
    made_by = victim(p, inference, **keys).made_by
    rng = Streams(3)
    posterior = run(made_by.inference, made_by.model, p, rng)
    return assess_filter(p, posterior, made_by, attacker, threat, rng, figures)


def failed_checks(report):
    return {check.name for check in report.checks if check.passed is False}


def test_doubling_budget_is_interpolated():
    errors = double([[1.0, 1.0, 1.0, 1.0], [1.5, 2.0, 1.0, 1.0], [2.5, 4.0, 1.9, torch.nan]])
    budget, doubled = doubling_budget([0.0, 1.0, 4.0], errors)
    assert budget.tolist() == pytest.approx([1 + 3 * 0.5, 1.0, 4.0, 1.0])
    assert doubled.tolist() == [True, True, False, True]


def test_attacked_kalman_filter_has_expected_scores():
    p = problem(25, 8)
    report = assess_run(spoofer(steps=5, queries=20), p, figures=True)
    assert failed_checks(report) == set()
    scores = report.scores
    assert all(value.shape == (8,) for value in scores.values())
    assert {name.split("/")[0] for name in scores} <= score_names("sequence", attacked=True)
    assert (scores["robust_rmse/eps=9.00"] > scores["robust_rmse/eps=1.00"]).all()
    assert torch.equal(scores["robust_rmse"], scores["robust_rmse/eps=9.00"])
    assert (scores["robust_rmse/eps=9.00"].mean() > scores["random_rmse/eps=9.00"].mean()).all()
    assert scores["attack_checks_passed"].tolist() == [1.0] * 8
    curve = report.tables["security_curve"]
    assert curve["eps"].tolist() == [0.0, 1.0, 3.0, 9.0]
    assert curve["rmse"].tolist()[0] == pytest.approx(float(scores["rmse"].mean()))
    assert set(report.figures) == {"error_curve"}


def test_robust_filter_error_stays_below_kalman():
    p = problem(30, 6)
    threat = Threat("l2", (0.0, 30.0))
    kalman = assess_run(spoofer(steps=4, queries=5, probability=0.1), p, threat)
    keys = {"inference": "beta_bootstrap_filter", "beta": 0.3, "particles": 200}
    robust = assess_run(spoofer(steps=4, queries=5, probability=0.1), p, threat, **keys)
    assert kalman.scores["robust_rmse"].mean() > 2 * robust.scores["robust_rmse"].mean()
    assert kalman.scores["doubled"].mean() > robust.scores["doubled"].mean()


class BeyondBudget(Spoofing):
    """An attacker that uses twice its budget."""

    def shift(self, victim, rng, eps, found):
        return 2 * super().shift(victim, rng, eps, None)


class EveryTime(Spoofing):
    """An attacker that shifts times outside its share."""

    def shift(self, victim, rng, eps, found):
        return torch.full_like(victim.observations, eps / 2)


class Timid(Spoofing):
    """An attacker that searches for the shift that helps the filter."""

    def shift(self, victim, rng, eps, found):
        if self.access != "gradient":
            return super().shift(victim, rng, eps, None)
        u = torch.zeros_like(victim.observations)
        for _ in range(5 * (eps > 0)):
            slope = victim.gradient(u)[1] * self.struck(victim, rng).unsqueeze(-1)
            u = u - 0.1 * eps * slope / slope.norm(dim=-1, keepdim=True).clamp_min(1e-12)
        return u


class NeverNothing(Spoofing):
    """An attacker that also shifts with a budget of 0."""

    def shift(self, victim, rng, eps, found):
        return super().shift(victim, rng, max(eps, 1e-6), None)


@pytest.mark.parametrize(
    ("wrong", "failing"),
    [
        (BeyondBudget, {"no observation moves by more than ε"}),
        (EveryTime, {"only the attacker's share of times is shifted"}),
        (
            Timid,
            {
                "the attack is not weaker than random signs",
                "a white box is not weaker than a black box",
            },
        ),
        (NeverNothing, {"a budget of 0 does not change the error"}),
    ],
)
def test_faulty_attacks_fail_their_checks(wrong, failing):
    attacker = wrong(**dict(spoofer(steps=4, queries=20)))
    with pytest.warns(IncompleteResultWarning, match="is not reliable"):
        report = assess_run(attacker)
    assert failing <= failed_checks(report)
    assert float(report.scores["attack_checks_passed"][0]) == 0


def test_wrong_filter_is_reported():
    p = problem(25, 8)
    attacker = spoofer(steps=1, queries=2)
    mine = victim(p).made_by
    other = victim(p, "beta_bootstrap_filter", beta=0.9, particles=50).made_by
    posterior = run(mine.inference, mine.model, p, Streams(3))
    with pytest.warns(IncompleteResultWarning, match="the attacked filter is the run's own"):
        assess_filter(p, posterior, other, attacker, Threat("l2", (0.0, 1.0)), Streams(3), False)


def test_single_replicate_has_scalar_scores():
    report = assess_run(spoofer(steps=1, queries=2), problem(10, 1))
    assert all(isinstance(value, float) for value in report.scores.values())


def test_unknown_states_are_reported_in_one_line():
    p = problem(6, 2)
    attacker = spoofer(steps=1)
    made_by = victim(p).made_by
    posterior = run(made_by.inference, made_by.model, p, Streams(3))
    nowhere = dataclasses.replace(p, states=None)
    unknown = dataclasses.replace(p, system=None)
    for data, maker, message in (
        (nowhere, made_by, "requires the true states, which dataset=test does not have"),
        (
            unknown,
            made_by._replace(model=object()),
            r"set attacker\.unit to its standard deviation",
        ),
    ):
        with pytest.raises(ConfigMismatchError, match=message):
            assess_filter(data, posterior, maker, attacker, THREAT, Streams(3), False)


def test_missing_observations_stay_missing():
    p = problem(30, 4)
    p.observations[0, 4:8] = torch.nan
    report = assess_run(spoofer(steps=3, queries=10), p)
    assert failed_checks(report) == set()
    assert torch.isfinite(report.scores["robust_rmse"]).all()


def test_particle_filter_gradient_passes_resampling():
    """The gradient of the exact filter, averaged over replicates that differ only in their
    particles.  For the first observation, most of it comes from the errors of later times, which
    resampling would remove."""
    p = problem(3, 1)
    particles = 2000
    exact = victim(p).gradient(torch.zeros_like(p.observations))[1][0, 0]
    cut = victim(p, window=1).gradient(torch.zeros_like(p.observations))[1][0, 0]
    many = dataclasses.replace(p, observations=p.observations.expand(60, -1, -1).clone())
    v = victim(many, "bootstrap_filter", particles=particles)
    gradient = v.gradient(torch.zeros_like(many.observations))[1][:, 0]
    assert z_score(gradient, exact).abs().max() < 4
    assert z_score(gradient, cut).abs().max() > 6


def test_gradient_pass_leaves_filter_unchanged():
    p = problem(10, 3)
    v = victim(p, "bootstrap_filter", particles=100)
    u = torch.zeros_like(p.observations)
    torch.testing.assert_close(v.gradient(u)[0], v.error(u), rtol=1e-12, atol=0)
    assert torch.equal(v.error(u), v.error(u))  # the attacker's random numbers are always the same
    other = dataclasses.replace(v, index=0)
    # and they differ from the random numbers of the evaluation
    assert not torch.equal(other.error(u), v.error(u))
