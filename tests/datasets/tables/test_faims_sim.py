"""The simulated FAIMS study: shape, signal, and information in features."""

from functools import partial

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from support.runs.configured import load_problem, make_setting
from support.small.small_problems import component
from torch.testing import assert_close

from components.datasets.tables.faims_sim import plumes
from runner.execution.rng import Streams

SETTING = make_setting()
SMALL = {"n_df": 8, "n_cv": 32}


load = partial(load_problem, "faims_sim", **SMALL)


def dataset(**changes):
    return component("dataset", "faims_sim", **(SMALL | changes))


def test_study_has_the_published_shape():
    study = dataset().study()
    assert study.current.shape == (125, 3, 8, 32)
    assert study.case.sum() == 48
    assert study.markers.sum() == 4
    assert study.current.min() >= 0


def test_plumes_follow_their_drift_and_fade():
    """exp(−loss s²) exp(−(v − α₂ s³ − α₄ s⁵)² / 2w²), w = 0.25 + 0.2 s, cell by cell."""
    alpha2 = np.array([2.0, -1.0])
    alpha4 = np.array([0.5, 0.3])
    loss = np.array([1.0, 2.0])
    result = plumes(alpha2, alpha4, loss, 5, 9)
    for k in range(2):
        for i in range(5):
            for j in range(9):
                s = i / 4
                v = -6 + 12 * j / 8
                drift = alpha2[k] * s**3 + alpha4[k] * s**5
                width = 0.25 + 0.2 * s
                expected = np.exp(-loss[k] * s**2) * np.exp(-((v - drift) ** 2) / (2 * width**2))
                assert_close(result[k, i, j], expected)


def test_patients_stay_on_one_side_of_the_split():
    problem = load()
    n_train = round(0.7 * 48) + round(0.7 * 77)
    for batch, n in ((problem.train, n_train), (problem.test, 125 - n_train)):
        assert batch.x.shape == (3 * n, 20)
        assert torch.equal(batch.mask, torch.eye(3, dtype=torch.bool).repeat(n, 1))
        labels = batch.y[batch.mask].reshape(n, 3)
        assert (labels == labels[:, :1]).all(), "a patient has the same label in every run"
    assert problem.train.y[:, 0].sum() == round(0.7 * 48), "stratified"
    assert problem.test.y[:, 0].sum() == 48 - round(0.7 * 48)


def test_features_are_scaled_by_training_rows():
    x = load().train.x
    assert_close(x.mean(0), torch.zeros(20, dtype=x.dtype))
    used = x.std(0) > 0
    assert_close(x.std(0, correction=0)[used] * 20**0.5, torch.ones(int(used.sum()), dtype=x.dtype))
    assert used.sum() >= 10


def test_training_features_are_independent_of_test_rows():
    config = dataset()
    cells = config.study().current.reshape(125, 3, -1)
    in_training = np.arange(125) < 88
    spoilt = cells.copy()
    spoilt[~in_training] += 5.0
    a, b = (config._features(c, in_training, seed=0) for c in (cells, spoilt))
    assert np.array_equal(a[in_training], b[in_training])
    assert not np.allclose(a[~in_training], b[~in_training])


def test_runs_have_similar_but_different_signals():
    """Concentrations fall from run to run, at rates that differ between compounds."""
    log_c = np.log(dataset(run_noise=0.0).study().concentration)  # [P, 3, K]
    loss = log_c[:, :-1] - log_c[:, 1:]
    assert (loss > 0).all()
    rates = loss.mean((0, 1))
    assert rates.max() > 5 * rates.min()
    noisy = np.log(dataset().study().concentration)
    first = noisy[:, 0]
    last = noisy[:, 2]
    r = [np.corrcoef(first[:, k], last[:, k])[0, 1] for k in range(noisy.shape[2])]
    assert 0.3 < np.mean(r) < 0.95


def test_disease_raises_only_its_markers():
    with_effect, without = (dataset(effect=e).study() for e in (1.0, 0.0))
    case = with_effect.case
    markers = with_effect.markers
    raised = np.log(with_effect.concentration / without.concentration)
    assert (raised[case][..., markers] > 0).all()
    assert np.allclose(raised[~case], 0)
    assert np.allclose(raised[..., ~markers], 0)
    # severity: mean 1
    assert raised[case][..., markers].mean() == pytest.approx(1.0, abs=4 * 0.5**0.5 / 48**0.5)


def test_replicates_are_splits_of_the_same_study():
    a, b = (load(replicate=r) for r in (0, 1))
    assert not torch.equal(a.train.x, b.train.x)
    assert np.array_equal(dataset().study().current, dataset().study().current)
    assert not np.array_equal(dataset().study().current, dataset(study_seed=1).study().current)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_cases": 122}, "lower n_cases"),
        ({"n_markers": 25}, "lower n_markers"),
        ({"n_components": 300}, "lower n_components"),
    ],
)
def test_impossible_studies_are_refused(changes, message):
    with pytest.raises(ValidationError, match=message):
        dataset(**changes)


@pytest.mark.slow
def test_random_forest_has_the_published_difficulty():
    """AUC of a forest per run over ten splits of the default study: 0.71 as published, within three
    standard errors."""
    aucs = np.empty((10, 3))
    config = component("dataset", "faims_sim")
    for r in range(10):
        problem = config.load(Streams(0, r), SETTING)
        for t in range(3):
            m = problem.train.mask[:, t]
            m_test = problem.test.mask[:, t]
            forest = RandomForestClassifier(200, random_state=r).fit(
                problem.train.x[m], problem.train.y[m, t]
            )
            p = forest.predict_proba(problem.test.x[m_test])[:, 1]
            aucs[r, t] = roc_auc_score(problem.test.y[m_test, t], p)
    standard_error = aucs.std(0, ddof=1) / 10**0.5
    assert (abs(aucs.mean(0) - 0.71) < 3 * standard_error).all(), (aucs.mean(0), standard_error)
