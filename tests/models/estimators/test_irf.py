from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import StratifiedKFold
from support.runs.configured import F64, build_model, generator
from support.small.small_problems import classes, component, real, tensors, train, train_and_resume
from torch.testing import assert_close

from components.metrics import regression

FIT = component("inference", "fit")


def peers(problem, kind, seed, **options):
    """scikit-learn's own forests, one per task."""
    for t in range(problem.n_tasks):
        is_labelled = problem.train.mask[:, t]
        forest = kind(n_estimators=30, bootstrap=True, random_state=seed + t, **options)
        yield forest.fit(
            problem.train.x[is_labelled].numpy(), problem.train.y[is_labelled, t].numpy()
        )


@pytest.mark.parametrize("dtype", [F64, torch.float32])
def test_tensor_traversal_equals_scikit_learn(dtype):
    problem = real(n=150, dtype=dtype)
    forests = build_model("irf", problem, trees=30, max_features=1.0)
    votes = forests.votes(forests.fit(problem.train, 7), problem.test.x)
    assert votes.shape == (30, 150, 2, 1)
    assert votes.dtype == dtype
    for t, peer in enumerate(peers(problem, RandomForestRegressor, 7, max_features=3)):
        expected = np.stack([tree.predict(problem.test.x.numpy()) for tree in peer.estimators_])
        assert_allclose(
            votes[:, :, t, 0].numpy(), expected, rtol=1e-5 if dtype == torch.float32 else 1e-12
        )


def test_class_probabilities_are_smoothed_votes():
    problem = classes(n=120, n_tasks=2)
    train_ = problem.train
    lacking = problem.train.y.clone()
    lacking[lacking[:, 1] == 1, 1] = 2  # task 1 has no label of class 1
    problem.train = replace(train_, y=lacking, scale=1.0)
    forests = build_model("irf", problem, trees=30, max_features=0.5, smoothing=2.0)
    probs = forests.predict_fitted(forests.fit(problem.train, 7), problem.test.x).probs
    for t, peer in enumerate(peers(problem, RandomForestClassifier, 7, max_features=2)):
        expected = np.zeros((120, 3))
        expected[:, peer.classes_] = peer.predict_proba(problem.test.x.numpy())
        assert_allclose(probs[:, t].numpy(), (30 * expected + 2) / (30 + 6), rtol=1e-10)


def test_predictive_variance_adds_trees_and_residual():
    problem = real(n=600, n_tasks=1, missing=0.0)
    forests = build_model("irf", problem, trees=100, max_features=1.0)
    fitted = forests.fit(problem.train, 0)
    predictive = forests.predict_fitted(fitted, problem.test.x)
    votes = forests.votes(fitted, problem.test.x)[..., 0]
    assert_close(predictive.mean, votes.mean(0))
    assert_close(predictive.variance, votes.var(0, correction=0) + fitted["noise"])
    scores = regression.scores(predictive, problem.test.y, problem.test.mask, ["t"])
    mse = float((predictive.mean - problem.test.y).square().mean())
    assert predictive.variance.mean() == pytest.approx(mse, rel=0.25)
    assert 0.84 < scores["coverage90"] < 0.97


def test_residual_variance_equals_its_definition():
    """Σ over rows of (squared out-of-bag error − variance over the trees that did not see the
    row)."""
    problem = real(n=40, n_tasks=1, missing=0.0)
    forests = build_model("irf", problem, trees=30, max_features=1.0)
    noise = float(forests.fit(problem.train, 7)["noise"])
    (peer,) = peers(problem, RandomForestRegressor, 7, max_features=3)
    x = problem.train.x.numpy()
    y = problem.train.y[:, 0].numpy()
    out = np.array([tree.predict(x) for tree in peer.estimators_])
    for column, rows in zip(out, peer.estimators_samples_, strict=True):
        column[rows] = np.nan
    several = np.isfinite(out).sum(0) >= 2
    terms = (y - np.nanmean(out, 0)) ** 2 - np.nanvar(out, 0)
    assert_close(noise, float(terms[several].mean()))


def test_tasks_with_few_or_no_labels_are_predicted():
    problem = real(n=6)
    few = torch.zeros_like(problem.train.mask)
    few[0, 0] = few[1, 1] = True
    problem.train = replace(
        problem.train, y=torch.where(few, problem.train.y.nan_to_num(), torch.nan), mask=few
    )
    forests = build_model("irf", problem, trees=5)
    assert torch.isfinite(
        forests.predict_fitted(forests.fit(problem.train, 0), problem.test.x).log_prob(
            problem.test.y
        )
    ).all()
    none = replace(problem.train, mask=torch.zeros_like(few))
    with pytest.raises(ValueError, match=r"task 0: has no training label; raise dataset.n_train"):
        forests.fit(none, 0)


def test_fit_uses_all_rows_for_any_batch_size():
    pieces = FIT, component("model", "irf", trees=5)
    whole = train(*pieces, real(), 1)[0]
    part = train(*pieces, real(batch_size=8), 1)[0]
    assert all(torch.equal(whole.fitted[name], part.fitted[name]) for name in whole.fitted)


def noisy(n_classes, n_tasks=1):
    """Unpredictable labels: a third of them, for training and testing, are drawn at random."""
    problem = classes(n=200, n_inputs=3, n_classes=n_classes, n_tasks=n_tasks)
    g = generator(1)
    for name in ("train", "test"):
        batch = getattr(problem, name)
        drawn = torch.rand(batch.y.shape, generator=g) < 0.33
        y = torch.where(drawn, torch.randint(n_classes, batch.y.shape, generator=g), batch.y)
        setattr(problem, name, replace(batch, y=y, scale=1.0))
    return problem


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(("n_classes", "n_tasks"), [(2, 1), (3, 2)])
def test_calibration_equals_scikit_learn(method, n_classes, n_tasks):
    """Equal up to the subsequent smoothing: (K q + α)/(K + αC)."""
    problem = noisy(n_classes, n_tasks)
    settings = {"trees": 30, "max_features": 1.0, "smoothing": 0.7}
    forests = build_model("irf", problem, **settings, calibrated=method)
    fitted = forests.fit(problem.train, 7)
    plain = build_model("irf", problem, **settings)
    # the trees are the same
    assert torch.equal(fitted["threshold"], plain.fit(problem.train, 7)["threshold"])
    probs = forests.predict_fitted(fitted, problem.test.x).probs.numpy()
    for t in range(n_tasks):
        is_labelled = problem.train.mask[:, t]
        peer = CalibratedClassifierCV(
            RandomForestClassifier(30, max_features=3, random_state=7 + t),
            method=method,
            ensemble=False,
            cv=StratifiedKFold(5, shuffle=True, random_state=7 + t),
        ).fit(problem.train.x[is_labelled].numpy(), problem.train.y[is_labelled, t].numpy())
        q = peer.predict_proba(problem.test.x.numpy())
        assert_allclose(probs[:, t], (30 * q + 0.7) / (30 + 0.7 * n_classes), rtol=1e-9)


def test_invalid_calibration_is_refused():
    with pytest.raises(ValueError, match=r"model\.calibrated: sigmoid .* set it to none"):
        build_model("irf", real(), calibrated="sigmoid")
    problem = classes(n=60, n_classes=2)
    problem.train.y[:] = (torch.arange(60) < 3)[:, None]
    forests = build_model("irf", problem, trees=5, calibrated="isotonic")
    message = r"model\.calibrated: task 0 has a class with 3 training labels, but needs 5"
    with pytest.raises(ValueError, match=message):
        forests.fit(problem.train, 0)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibrated_forest_resumes_and_smooths_absent_classes(method, tmp_path):
    problem = noisy(3)
    lacking = torch.where(problem.train.y == 1, 2, problem.train.y)
    problem.train = replace(problem.train, y=lacking)
    pieces = FIT, component("model", "irf", trees=10, calibrated=method)
    whole, rng = train(*pieces, problem, 2)
    parts, _ = train_and_resume(*pieces, problem, 2, 1, tmp_path)
    assert_close(tensors(whole), tensors(parts), rtol=0, atol=0)
    probs = FIT.posterior(whole).predict(problem.test.x, rng.evaluation).probs[:, 0]
    assert_close(probs[:, 1], torch.full_like(probs[:, 1], 1 / 13))
    assert_close(probs.sum(1), torch.ones_like(probs[:, 1]))
