"""Budget plans for a problem: scores, figure and tables of a posterior with input effects, and
errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from support.runs.configured import F64, defaults, load, normal

from components.contracts.posteriors import Affine, AffineInInputs
from components.errors import ConfigMismatchError, IncompleteResultWarning
from components.evaluation.run_checks import interval_checks


@dataclass
class Known:
    """Draws of q around the truth with known decay: ``AffineInInputs``."""

    effect: torch.Tensor  # [H, H, c]
    spread: float
    draws: int = 50

    def affine(self, series, horizon, generator):
        factor = 1 + self.spread * normal(generator, self.draws, 1, 1, self.effect.shape[-1])
        effect = self.effect[:horizon, :horizon] * factor
        mean = 180 + normal(generator, self.draws, horizon)
        return Affine(mean, 25 * torch.eye(horizon, dtype=F64).expand(self.draws, -1, -1), effect)


def plan_spending(spread=0.0, draws=50, **budget):
    problem, rng = load(
        "retail_sim",
        n_steps=60,
        n_train=50,
        budget=defaults("dataset", "retail_sim")["budget"] | budget,
    )
    posterior = Known(problem.system.effect(10), spread, draws)
    assert isinstance(posterior, AffineInInputs)
    return problem, problem.plan_budget(posterior, rng)


def test_plan_from_the_truth_is_best():
    _, plan = plan_spending(total=20.0, weekly_most={"ONLINE": 2.0})
    scores = plan.scores()
    assert scores["plan_share"] == pytest.approx(1.0)
    assert 0 < scores["equal_share"] < 0.7
    u = plan.plan.u.reshape(4, 5)
    assert u.sum() == pytest.approx(20.0, abs=1e-8)
    assert u[0, 2] == pytest.approx(2.0)  # the best channel as early and as far as possible
    assert u[3, 0] == pytest.approx(0.0, abs=1e-9)
    # gain of the plan, by the recursion itself: Σ_h A_{T+h} with and without
    truth = [1.0, 0.0, 3.0, 2.0, 0.0]
    A = 0.0
    total = 0.0
    for week in u:
        A = 0.5 * A + float(week @ truth)
        total += A
    equal = 0.0
    E = 0.0
    for _ in range(4):
        E = 0.5 * E + sum(truth)
        equal += E
    assert scores["plan_gain"] == pytest.approx(total - equal, rel=1e-6)
    assert scores["plan_realised"] == pytest.approx(total - equal, rel=1e-6)
    assert scores["plan_excess"] == pytest.approx(0.0, abs=1e-6)
    assert scores["plan_width90"] == pytest.approx(0.0, abs=1e-6)


def test_effects_are_shrunk_by_default():
    _, shrunk = plan_spending(0.8, total=20.0)
    _, plain = plan_spending(0.8, total=20.0, shrink=False)
    e = shrunk.law.effect[:5]
    of_draws = plain.law.effect[:5]
    effective = [0, 2, 3]  # the others have no effect in any draw
    assert np.ptp(e[effective]) < np.ptp(of_draws[effective])
    assert e[[1, 4]].tolist() == of_draws[[1, 4]].tolist() == [0.0, 0.0]
    assert shrunk.scores()["plan_gain"] < plain.scores()["plan_gain"]


def test_plan_from_a_point_estimate_has_no_interval():
    _, plan = plan_spending(0.8, draws=1, total=20.0)
    scores = plan.scores()
    assert "plan_gain" in scores
    assert not {"plan_width90", "plan_coverage90"} & set(scores)
    assert plan.tables()["budget"]["gain lower90"].isna().all()
    (check,) = interval_checks(scores)
    assert check.passed is None
    assert "inference=structural_gibbs" in check.detail


def test_weekly_bounds_hold():
    _, plan = plan_spending(total=20.0, weekly=6.0)
    u = plan.plan.u.reshape(4, 5)
    # earlier spending acts for more weeks
    assert u.sum(1).tolist() == pytest.approx([6, 6, 6, 2])
    assert plan.budget.equal(plan.channels).sum() == pytest.approx(20.0)


def test_tables_and_figure_match_the_plan():
    keys = {
        "total": 8.0,
        "most": {"ONLINE": 3.0},
        "limits": {"co2": {"weights": {"OOH": 1.0}, "most": 1.0}},
    }
    problem, plan = plan_spending(
        0.3,
        risk=11.5,
        strategies={"posters": {"OOH": 4.0}, "web": {"ONLINE": 2.0, "SEARCH": 5.0}},
        **keys,
    )
    tables = plan.tables()
    table = tables["budget"].set_index("choice")
    assert list(table.index) == [
        "the plan",
        "posters",
        "web",
        "equal split",
        "nothing",
        "as it was",
    ]
    assert table.loc["posters", "verdict"] == "breaks limits.co2"
    assert table.loc["equal split", "verdict"] in ("breaks limits.co2", "beaten by the plan")
    assert table.loc["the plan", "verdict"] == "kept"
    assert table.loc["the plan", "expected"] >= table.loc["web", "expected"]
    assert table.loc["the plan", "sd"] <= 11.5 * (1 + 1e-9)
    assert table.loc["nothing", "added by spending"] == 0
    gain = table.loc["the plan", "expected"] - table.loc["equal split", "expected"]
    assert table.loc["the plan", "gain"] == pytest.approx(gain)
    assert table.loc["the plan", "gain lower90"] < gain < table.loc["the plan", "gain upper90"]
    assert table.loc["equal split", "gain"] == 0
    for name, row in table.iterrows():
        u = next(choice.u for choice in plan.choices if choice.name == name)
        assert row["sales lower90"] == plan.law.quantile(u, 0.05) < row["expected"]
        assert row["sales upper90"] == plan.law.quantile(u, 0.95) > row["expected"]
    spent = torch.cat([problem.inputs[-1:], problem.beyond.u[:3]]).sum(0)
    assert table.loc["as it was", problem.input_names].tolist() == pytest.approx(spent.tolist())
    weeks = tables["budget_plan"]
    assert weeks["week"].tolist() == list(problem.dates[49:53])
    assert weeks[problem.input_names].sum().tolist() == pytest.approx(
        table.loc["the plan", problem.input_names].tolist()
    )
    figure = plan.figures()["budget"]
    assert len(figure.axes) == 2
    assert len(figure.axes[0].lines) == 7  # the frontier and six choices
    assert f"gain above the equal split: {gain:.3g} (90 %:" in figure.axes[1].get_title()


def test_infeasible_risk_is_reported_with_the_other_results():
    _, plan = plan_spending(0.3, total=8.0, risk=1.0)
    with pytest.warns(
        IncompleteResultWarning,
        match=r"dataset.budget.risk=1: .* standard deviation below .*; raise it",
    ):
        assert plan.scores() == {}


def test_budget_without_a_request_is_not_planned():
    _, plan = plan_spending()
    assert plan is None


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (
            {"total": 5.0, "least": {"TV": 4.0, "OOH": 2.0}},
            r"dataset.budget.total=5: minimum spends \(least.TV, least.OOH\) need 6; raise it, or lower them",
        ),
        (
            {"total": 5.0, "least": {"Tv": 4.0}},
            "dataset.budget.least: the series has no input Tv; its inputs are OOH, TV",
        ),
        (
            {"total": 5.0, "strategies": {"a": {"x": 4.0}}},
            "dataset.budget.strategies.a: the series has no input x",
        ),
        ({"total": 5.0, "weeks": 11}, "dataset.budget.weeks=11: only 10 weeks are forecast"),
        (
            {"total": 50.0, "least": {"TV": 9.0}, "weekly_most": {"TV": 2.0}},
            "dataset.budget.least.TV: conflicts with the other constraints",
        ),
    ],
)
def test_invalid_budgets_are_refused_before_any_work(budget, message):
    with pytest.raises(ConfigMismatchError, match=message) as error:
        plan_spending(**budget)
    assert "\n" not in str(error.value)
