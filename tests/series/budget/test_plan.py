"""The best plan compared with an exhaustive grid, simulation and its own bound; infeasible
constraints."""

import numpy as np
import pytest
import torch
from scipy import stats

from components.errors import ConfigMismatchError
from components.series.budget.budget import frontier
from components.series.budget.choices import find_dominators, judge
from components.series.budget.plan import TOLERANCE, best_plan, safest_plan
from components.series.budget.spends import Spends
from components.series.budget.sum_law import SumLaw


def make_draws(k, c, seed=0, draws=150):
    """base [S, k], response [S, k, k·c] and variance of the summed noise, for goodwill with random
    decay and channels."""
    rng = np.random.default_rng(seed)
    decay = rng.beta(20, 20, draws)
    q = np.abs(rng.normal(0.3, 0.15, (draws, c)))
    response = np.zeros((draws, k, k, c))
    for h in range(k):  # u_{t+j} moves y_{t+h+1}, h ≥ j
        for j in range(h + 1):
            response[:, h, j] = q * ((1 - decay) ** (h - j))[:, None]
    base = torch.from_numpy(rng.normal(50, 1, (draws, k)) - 2 * q[:, :1])
    return base, torch.from_numpy(response).flatten(2), torch.full((draws,), 4.0 * k)


def spends(
    n,
    total,
    upper=np.inf,
    extra=None,
):
    names, rows, limits = zip(("total", [1.0] * n, total), *(extra or []), strict=True)
    return Spends(np.zeros(n), np.full(n, upper), np.array(rows), np.array(limits), list(names))


@pytest.mark.parametrize(("risk", "aversion"), [(None, 0.0), (2.95, 0.0), (None, 0.7), (2.95, 0.3)])
def test_plan_of_two_channels_matches_an_exhaustive_grid(risk, aversion):
    law = SumLaw.of_draws(*make_draws(1, 2))
    total = 10.0
    plan = best_plan(law, spends(2, total), risk, aversion)
    grid = np.linspace(0, total, 101)
    u = np.stack(np.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2)
    u = u[u.sum(1) <= total + 1e-12]
    each = law.a + u @ law.r.T  # [g, S]: the law of total variance, draw by draw
    sd = np.sqrt(law.v.mean() + each.var(1))
    value = np.where(np.inf if risk is None else risk, each.mean(1) - aversion * sd, 0)
    if risk is not None:
        value = np.where(sd <= risk, value, -np.inf)
    best = int(value.argmax())
    step = grid[1]
    ours = plan.mean - aversion * plan.sd
    assert ours >= value[best] - 1e-9  # the grid has no better plan
    assert (
        ours <= value[best] + 2 * step * np.abs(law.effect).sum()
    )  # and one that is nearly as good
    if risk is not None:
        assert plan.sd <= risk + 1e-9
    assert not np.allclose(
        plan.u, total / 2, atol=0.05
    )  # never the equal split, which is not optimal


def test_mean_and_variance_of_a_plan_match_simulation():
    base, response, noise = make_draws(3, 2)
    plan = best_plan(SumLaw.of_draws(base, response, noise), spends(6, 30.0, 8.0), aversion=0.5)
    rng = np.random.default_rng(1)
    n = 200_000
    draw = rng.integers(len(base), size=n)
    weeks = base + response @ torch.from_numpy(plan.u)  # [S, k]
    # Σ_h y_{t+h} week by week: the noises are independent, a k-th of the variance each
    y = weeks.numpy()[draw] + rng.normal(size=(n, 3)) * np.sqrt(noise.numpy()[draw] / 3)[:, None]
    total = y.sum(1)
    assert abs(total.mean() - plan.mean) < 3 * total.std() / np.sqrt(n)
    fourth = ((total - total.mean()) ** 4).mean()
    assert abs(total.var() - plan.sd**2) < 3 * np.sqrt((fourth - total.var() ** 2) / n)


def test_quantiles_are_normal_or_of_a_mixture():
    u = np.array([2.0, 1.0])
    law = SumLaw(np.array([50.0]), np.array([[0.5, 0.2]]), np.array([4.0]))
    assert law.quantile(u, 0.05) == pytest.approx(51.2 + 2 * stats.norm.ppf(0.05))
    mixed = SumLaw.of_draws(*make_draws(1, 2))
    q = mixed.quantile(u, 0.05)
    each = stats.norm.cdf(q, mixed.a + mixed.r @ u, np.sqrt(mixed.v))
    assert each.mean() == pytest.approx(0.05)


@pytest.mark.parametrize("level", [0.05, 0.95])
def test_quantiles_of_student_t_errors_match_monte_carlo(level):
    """One week: a + r'u + σ t_ν with random precisions; a normal with the same variance fails."""
    nu = 3.0
    sigma = 2.0
    n = 40_000
    precision = np.random.default_rng(0).gamma(nu / 2, 2 / nu, n)
    law = SumLaw(np.full(n, 50.0), np.full((n, 1), 0.5), sigma**2 / precision)
    exact = 52 + sigma * stats.t.ppf(level, nu)
    density = stats.t.pdf(stats.t.ppf(level, nu), nu) / sigma
    error = np.sqrt(level * (1 - level) / n) / density  # at most
    assert abs(law.quantile(np.array([4.0]), level) - exact) < 3 * error
    normal = law.mean(np.array([4.0])) + stats.norm.ppf(level) * law.sd(np.array([4.0]))
    assert abs(normal - exact) > 10 * error


def test_binding_budget_is_spent_exactly():
    law = SumLaw.of_draws(*make_draws(4, 5))
    safest = safest_plan(law, spends(20, 40.0)).sd
    for risk, aversion in ((None, 0.0), (safest * 1.02, 0.0), (None, 0.05)):
        plan = best_plan(law, spends(20, 40.0, 3.0), risk, aversion)
        assert plan.u.sum() == pytest.approx(40.0, abs=1e-8) or risk is not None
        assert 0 <= plan.u.min() <= plan.u.max() <= 3.0
        assert plan.gap <= TOLERANCE * (np.sqrt(law.base_variance) + abs(plan.mean))


def test_equal_channels_are_equal_and_risk_splits_them():
    """Two channels with the same law and independent draws: of all plans that spend the budget, the
    equal split has the least variance."""
    rng = np.random.default_rng(3)
    q = rng.normal(1.0, 0.2, (4000, 2))
    q = np.concatenate([q, q[:, ::-1]])  # exactly exchangeable draws
    law = SumLaw(np.zeros(8000), q, np.ones(8000))
    plan = best_plan(law, spends(2, 6.0), aversion=0.3)
    assert plan.u == pytest.approx([3.0, 3.0], abs=1e-3)


def test_side_constraints_bind():
    law = SumLaw.of_draws(*make_draws(2, 2))
    order = np.argsort(-law.effect)
    carbon = np.zeros(4)
    carbon[order[0]] = 2.0
    free = best_plan(law, spends(4, 10.0))
    held = best_plan(law, spends(4, 10.0, extra=[("limits.co2", list(carbon), 3.0)]))
    assert free.u[order[0]] == pytest.approx(10.0)
    assert held.u[order[0]] == pytest.approx(1.5)
    assert held.u[order[1]] == pytest.approx(8.5)
    assert held.mean < free.mean


def test_channels_with_negative_effects_get_nothing():
    law = SumLaw(np.zeros(2), np.array([[-1.0, 2.0], [-2.0, 1.0]]), np.ones(2))
    assert best_plan(law, spends(2, 5.0)).u == pytest.approx([0.0, 5.0])
    harmful = SumLaw(law.a, -np.abs(law.r), law.v)
    assert best_plan(harmful, spends(2, 5.0)).u == pytest.approx([0.0, 0.0])


def test_frontier_rises_and_is_not_dominated():
    law = SumLaw.of_draws(*make_draws(3, 3))
    within = spends(9, 20.0, 4.0)
    plans = frontier(law, within, 6)
    means = [p.mean for p in plans]
    sds = [p.sd for p in plans]
    assert np.all(np.diff(means) > 0)
    assert np.all(np.diff(sds) > 0)
    assert np.all(np.diff(np.diff(means) / np.diff(sds)) < 1e-6)  # concave
    assert find_dominators([*zip(means, sds, strict=True)]) == [None] * 6
    assert find_dominators([*zip(means, sds, strict=True), (means[2], sds[2] + 0.001)])[-1] == 2
    for p in plans:
        assert within.broken(p.u) is None
        rng = np.random.default_rng(0)
        for _ in range(50):  # no random plan has a higher mean at equal or lower risk
            u = rng.dirichlet(np.ones(9)) * 20 * rng.random()
            if u.max() <= 4 and law.sd(u) <= p.sd:
                assert law.mean(u) <= p.mean + 1e-6


@pytest.mark.parametrize(
    ("extra", "risk", "message"),
    [
        (
            [("least.tv", [-1.0, 0.0], -7.0), ("least.ooh", [0.0, -1.0], -4.0)],
            None,
            r"dataset.budget.total=10: minimum spends \(least.tv, least.ooh\) need 11; raise it, or lower them",
        ),
        (
            [("least.tv", [-1.0, 0.0], -7.0), ("limits.co2", [2.0, 0.0], 10.0)],
            None,
            r"dataset.budget.(least.tv|limits.co2): conflicts with the other constraints",
        ),
        (
            [],
            0.5,
            r"dataset.budget.risk=0.5: no plan has a standard deviation below 2.\d+; raise it",
        ),
    ],
)
def test_infeasible_constraints_are_named(extra, risk, message):
    law = SumLaw.of_draws(*make_draws(1, 2))
    with pytest.raises(ConfigMismatchError, match=message) as error:
        best_plan(law, spends(2, 10.0, extra=extra), risk)
    assert "\n" not in str(error.value)


def test_strategies_are_filtered_by_name():
    within = spends(2, 10.0, extra=[("limits.co2", [2.0, 0.0], 6.0)])
    plans = np.array([[3.0, 7.0], [3.0, 8.0], [5.0, 1.0], [-1.0, 1.0]])
    assert list(map(within.broken, plans)) == [None, "total", "limits.co2", "bounds of a week"]


def test_strategies_are_kept_dominated_or_excluded():
    law = SumLaw(np.zeros(2), np.array([[1.0, 1.2], [1.0, 2.8]]), np.ones(2))
    within = spends(2, 10.0, extra=[("limits.co2", [2.0, 0.0], 16.0)])
    offered = {"safe": [8, 0], "bold": [0, 10], "poor": [1, 6], "dear": [8, 4], "dirty": [9, 0]}

    def verdicts(plans, risk=None):
        choices = judge(law, within, {name: np.array(u) for name, u in plans.items()}, risk)
        return [choice.verdict for choice in choices]

    assert verdicts(offered) == ["kept", "kept", "kept", "breaks total", "breaks limits.co2"]
    assert verdicts({"a": [4.0, 0.0], "b": [8.0, 0.0]})[0] == "beaten by b"
    assert verdicts({"bold": [0.0, 10.0]}, 5.0) == ["breaks risk"]
