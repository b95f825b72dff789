"""NaN predictions have no class: in scores, under attack, in votes and data frames."""

from dataclasses import replace

import pytest
import torch
from support.runs.configured import component, threat
from support.small.small_problems import classes, real

from components.contracts.predictive import Categorical, GaussianMixture, PoissonMixture, is_finite
from components.evaluation.checks.class_predictions import missing_checks, predict_test_rows
from components.evaluation.checks.finite_scores import finite_scores
from components.evaluation.security.curves import security_curve
from components.metrics.classification import scores
from components.posteriors.noisy_votes import count_votes, vote_logits
from runner.execution.rng import Streams
from runner.python.export.answer_frames import frame_of_clusters, frame_of_predictive

NAN = torch.nan
INF = torch.inf
LOGITS = torch.tensor(
    [
        [5.0, 1.0, 0.0],
        [NAN, NAN, NAN],
        [0.0, NAN, 0.0],
        [INF, 0.0, 0.0],
        [-INF] * 3,
        [-INF, 2.0, 0.0],
    ]
)


class Counts:
    """Logits log x, which are NaN for negative x."""

    def predict(self, x, g):
        return Categorical((8 * x.log()[:, :3]).unflatten(1, (1, 3))[None])


def problem_of_counts():
    problem = classes(n=80, n_inputs=4, n_classes=3)
    x = problem.test.x.abs() + 0.02
    y = Counts().predict(x, None).guess
    return replace(problem, test=replace(problem.test, x=x, y=y), bounds=None)


@pytest.mark.parametrize("samples", [1, 2])
def test_rows_without_finite_probabilities_have_no_class(samples):
    logits = LOGITS[None, :, None].repeat(samples, 1, 1, 1)
    assert Categorical(logits).guess[:, 0].tolist() == [0, -1, -1, -1, -1, 1]
    assert is_finite(Categorical(logits))[:, 0].tolist() == [True, *[False] * 4, True]


def test_scores_exclude_rows_without_class():
    y = torch.tensor([[0], [0], [0], [0], [0], [1]])
    part = [0, 5]
    ours = scores(Categorical(LOGITS[None, :, None]), y, torch.ones_like(y).bool(), ["y"])
    finite = scores(
        Categorical(LOGITS[None, part, None]), y[part], torch.ones_like(y[part]).bool(), ["y"]
    )
    assert ours["accuracy"] == pytest.approx(2 / 6)
    assert finite["accuracy"] == 1
    assert (ours["nlpp"], ours["ece"]) == (finite["nlpp"], finite["ece"])


def test_check_counts_rows_without_class():
    problem = problem_of_counts()
    problem.test.x[:3] = -1
    (check,) = missing_checks(predict_test_rows(problem, Counts(), Streams(0)))
    assert (check.name, check.passed) == ("test rows have finite predictions", False)
    assert check.detail.startswith(
        f"3 of {len(problem.test.x)} test rows have none: counted as wrong"
    )


class Roots:
    """Gaussians with mean √x, which is NaN for negative x."""

    def predict(self, x, g):
        return GaussianMixture(x[None, :, :1].sqrt(), torch.ones_like(x[None, :, :1]))


@pytest.mark.parametrize("missing", [0, 2, 5])
def test_unpredicted_real_labels_are_excluded_and_counted(missing):
    x = torch.arange(1.0, 6.0)[:, None]
    whole = real(n=5, n_inputs=1, n_tasks=1)
    whole = replace(whole, test=replace(whole.test, x=x))
    problem = replace(whole, test=replace(whole.test, x=torch.where(x <= missing, -1.0, x)))
    part = replace(whole, test=whole.test.part(torch.arange(missing, 5), 1.0))
    ours = problem.score(Roots(), Streams(0))
    checks = missing_checks(predict_test_rows(problem, Roots(), Streams(0)))
    if missing == 5:  # no label remains
        assert finite_scores(ours, problem).passed is False
        return
    assert ours == part.score(Roots(), Streams(0))
    assert [c.detail for c in checks] == [
        f"{missing} of 5 test rows have none: omitted from nlpp, rmse, coverage90 and crps"
    ] * (missing > 0)


@pytest.mark.parametrize("name", ["pgd", "apgd", "square"])
def test_attacked_inputs_without_class_count_as_broken(name):
    problem = problem_of_counts()
    attacker = component("attacker", name)
    curve = security_curve(problem, Counts(), attacker, threat(attacker, [0.05, 3.0]), Streams(0))
    missing = int(curve.rows["unpredicted"].iloc[-1])
    assert missing > 0
    assert float(curve.rows["accuracy"].iloc[-1]) <= 1 - missing / len(problem.test.x)
    (detail,) = (check.detail for check in curve.checks if "finite predictions" in check.name)
    assert f"of {len(problem.test.x)} attacked inputs have no finite prediction" in detail
    assert "set dataset.bounds" in detail


def test_draws_without_class_do_not_vote():
    assert count_votes(LOGITS[:, None, None]).flatten().tolist() == [1, 1, 0]
    assert torch.equal(
        Categorical(vote_logits(LOGITS[:2, None, None])[None]).guess, torch.tensor([[0]])
    )


def test_nonfinite_predictions_leave_empty_cells():
    frame = frame_of_predictive(Categorical(LOGITS[None, :, None]), ["y"], ["a", "b", "c"])
    assert frame["class"].fillna("").tolist() == ["a", "", "", "", "", "b"]
    assert frame["p(a)"].isna().tolist() == [False, *[True] * 4, False]
    rates = PoissonMixture(torch.tensor([[[0.0], [NAN], [800.0]]]), torch.zeros(1))
    assert frame_of_predictive(rates, ["y"], [])["q0.5"].isna().tolist() == [False, True, True]
    clusters = frame_of_clusters(torch.zeros(2), torch.tensor([[0.1, 0.9], [NAN, NAN]]))
    assert clusters["cluster"].isna().tolist() == [False, True]
    assert clusters["cluster"][0] == 2
