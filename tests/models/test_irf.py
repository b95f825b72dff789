import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from small_problems import classes, component, real, resumed, tensors, train

from components.interfaces import CAPABILITIES
from components.metrics import classification, regression
from components.problems.supervised import Batch
from runner.rng import Streams

FIT = component("inference", "fit")


def peers(problem, kind, seed, **options):
    """scikit-learn's own forests, one per task."""
    for t in range(problem.n_tasks):
        seen = problem.train.mask[:, t]
        forest = kind(n_estimators=30, bootstrap=True, random_state=seed + t, **options)
        yield forest.fit(problem.train.x[seen].numpy(), problem.train.y[seen, t].numpy())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_walking_the_tensors_is_what_scikit_learn_predicts(dtype):
    problem = real(n=150, dtype=dtype)
    forests = component("model", "irf", trees=30, max_features=1.0).build(problem, Streams(0))
    assert isinstance(forests, CAPABILITIES["estimator"])
    votes = forests.votes(forests.fit(problem.train, 7), problem.test.x)
    assert votes.shape == (30, 150, 2, 1)
    assert votes.dtype == dtype
    for t, peer in enumerate(peers(problem, RandomForestRegressor, 7, max_features=3)):
        expected = np.stack([tree.predict(problem.test.x.numpy()) for tree in peer.estimators_])
        np.testing.assert_allclose(votes[:, :, t, 0].numpy(), expected, rtol=1e-5 if dtype == torch.float32 else 1e-12)


def test_class_probabilities_are_smoothed_votes_even_where_a_task_lacks_a_class():
    problem = classes(n=120, n_tasks=2)
    train_, lacking = problem.train, problem.train.y.clone()
    lacking[lacking[:, 1] == 1, 1] = 2  # task 1 never shows class 1
    problem.train = Batch(train_.x, lacking, train_.mask, 1.0)
    forests = component("model", "irf", trees=30, max_features=0.5, smoothing=2.0).build(problem, Streams(0))
    probs = forests.predict(forests.fit(problem.train, 7), problem.test.x).probs
    for t, peer in enumerate(peers(problem, RandomForestClassifier, 7, max_features=2)):
        expected = np.zeros((120, 3))
        expected[:, peer.classes_] = peer.predict_proba(problem.test.x.numpy())
        np.testing.assert_allclose(probs[:, t].numpy(), (30 * expected + 2) / (30 + 6), rtol=1e-10)


def test_predictive_variance_is_over_trees_plus_residual_and_is_calibrated():
    problem = real(n=600, n_tasks=1, missing=0.0)
    forests = component("model", "irf", trees=100, max_features=1.0).build(problem, Streams(0))
    fitted = forests.fit(problem.train, 0)
    predictive, votes = forests.predict(fitted, problem.test.x), forests.votes(fitted, problem.test.x)[..., 0]
    torch.testing.assert_close(predictive.mean, votes.mean(0))
    torch.testing.assert_close(predictive.variance, votes.var(0, correction=0) + fitted["noise"])
    scores = regression.scores(predictive, problem.test.y, problem.test.mask, ["t"])
    mse = float((predictive.mean - problem.test.y).square().mean())
    assert float(predictive.variance.mean()) == pytest.approx(mse, rel=0.25)
    assert 0.84 < scores["coverage90"] < 0.97


def test_residual_variance_literally():
    """Σ over rows of (squared out-of-bag error − variance over the trees that did not see the row)."""
    problem = real(n=40, n_tasks=1, missing=0.0)
    forests = component("model", "irf", trees=30, max_features=1.0).build(problem, Streams(0))
    noise = float(forests.fit(problem.train, 7)["noise"])
    (peer,) = peers(problem, RandomForestRegressor, 7, max_features=3)
    x, y, terms = problem.train.x.numpy(), problem.train.y[:, 0].numpy(), []
    for i in range(40):
        out = [
            tree.predict(x[i : i + 1])[0]
            for tree, rows in zip(peer.estimators_, peer.estimators_samples_, strict=True)
            if i not in rows
        ]
        if len(out) >= 2:
            terms.append((y[i] - np.mean(out)) ** 2 - np.var(out))
    assert noise == pytest.approx(np.mean(terms))


def test_learns_classes():
    problem = classes(n=200)
    state, rng = train(FIT, component("model", "irf", trees=50), problem, 1)
    predictive = FIT.posterior(state).predict(problem.test.x, rng.evaluation)
    assert classification.scores(predictive, problem.test.y, problem.test.mask, ["t"])["accuracy"] > 0.8


def test_few_labels_and_none():
    problem = real(n=6)
    few = torch.zeros_like(problem.train.mask)
    few[0, 0] = few[1, 1] = True
    problem.train = Batch(problem.train.x, torch.where(few, problem.train.y.nan_to_num(), torch.nan), few, 1.0)
    forests = component("model", "irf", trees=5).build(problem, Streams(0))
    assert torch.isfinite(forests.predict(forests.fit(problem.train, 0), problem.test.x).log_prob(problem.test.y)).all()
    none = Batch(problem.train.x, problem.train.y, torch.zeros_like(few), 1.0)
    with pytest.raises(ValueError, match="task 0: no training label"):
        forests.fit(none, 0)


def test_fit_wants_the_whole_data():
    with pytest.raises(ValueError, match=r"dataset\.batch_size=null"):
        train(FIT, component("model", "irf"), real(batch_size=8), 0)


def test_resumed_run_is_bit_identical(tmp_path):
    pieces = FIT, component("model", "irf", trees=10)
    whole, rng = train(*pieces, real(), 2)
    parts, _ = resumed(*pieces, real(), 2, 1, tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(tensors(whole), tensors(parts), strict=True))
    predicted = [FIT.posterior(s).predict(real().test.x, rng.evaluation).mu for s in (whole, parts)]
    assert torch.equal(*predicted)
