"""The name that enters a run's signature is the name of the data that are loaded."""

import pytest
from support.runs.configured import make_setting
from support.small.small_problems import component

from runner.execution.rng import Streams

SETTING = make_setting()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("airfoil", {"simulated": True}),
        ("airfoil", {}),
        ("titanic", {"n_test": 200}),
        ("logistic_synthetic", {"n_train": 3, "n_test": 3}),
        ("multitask_toy", {"n_train": 2}),
        ("digits", {}),
        ("faims_sim", {"n_df": 4, "n_cv": 16}),
        ("mnist_variations", {"n_train": 2, "n_test": 2, "offline": "always"}),
        ("mnist", {"n_train": 2, "n_test": 2, "offline": "always"}),
        ("fashion_mnist", {"n_train": 2, "n_test": 2, "offline": "always"}),
        ("sms_spam", {"simulated": True}),
        ("two_moons", {}),
        ("uci_classification", {}),
    ],
)
def test_announced_and_loaded_names_agree(name, changes):
    dataset = component("dataset", name, **changes)
    problem = dataset.load(Streams(0), SETTING)
    assert problem.name == dataset.identity(SETTING.data_dir, SETTING.offline)
    assert problem.describe()["data"] == problem.name
