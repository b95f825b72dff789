"""All datasets with optional files: simulated replacements and errors."""

import re
import warnings

import pytest
import torch
from support.runs.configured import component, load_problem

from components import registry
from components.datasets import data_files, files
from components.datasets.densities.posteriordb import SIMULATED
from components.errors import DamagedFileError, DataUnavailableError, SimulatedDataWarning

FEW_ROWS = {"n_train": 50, "n_test": 10}
# keys other than the defaults, for other files or fewer rows
KEYS = {
    "airlines": FEW_ROWS,
    "images omniglot": {"set": "omniglot", "offline": "simulate"},
    "images omniglot-partial": {"set": "omniglot-partial", "offline": "simulate"},
    "imdb": {"n_train": 50, "length": 5},
    "sarcos test_file": {"split": "test_file"},
    "year": FEW_ROWS,
}
STAND_INS = {
    "airfoil": "airfoil-sim",
    "airline": "airline-sim",
    "airlines": "airlines-sim",
    "binarised_fashion": "digits-enlarged-threshold",
    "binarised_mnist": "digits-enlarged-static",
    "cifar10": "cifar10-sim",
    "co2": "co2-sim",
    "fashion_mnist": "digits-enlarged",
    "images omniglot": "digits-enlarged-dynamic",
    "images omniglot-partial": "digits-enlarged-dynamic",
    "imdb": "imdb-sim",
    "inference_gym": SIMULATED,
    "london_air": "london_air-sim",
    "mnist": "digits-enlarged",
    "mnist_variations": "digits-variations",
    "nutria": "nutria-sim",
    "posteriordb": SIMULATED,
    "reviews": "reviews-sim",
    "sarcos": "sarcos-sim",
    "sarcos test_file": "sarcos-sim",
    "sms_spam": "sms-sim",
    "spambase": "spam-sim",
    "sunspots": "sunspots-sim",
    "uci_classification": "uci-classification-sim",
    "uci_regression": "uci-sim",
    "word_counts": "reviews-sim",
    "year": "year-sim",
}
# keys that request the stand-in, if not ``simulated`` or ``offline=always``
ASKED = {
    "inference_gym": {"target": SIMULATED},
    "posteriordb": {"posterior": SIMULATED},
    "sarcos": {"split": "simulated"},
}
absent = pytest.mark.parametrize("case", STAND_INS)
pytestmark = pytest.mark.usefixtures("own_cache")


def load_absent(case, folder, **changes):
    name = case.split()[0]
    return load_problem(name, folder, dtype=torch.float32, **KEYS.get(case, {}) | changes)


def test_every_dataset_with_a_stand_in_is_listed():
    names = {n for n in registry.names("dataset") if "offline" in fields_of(n)}
    assert names == {case.split()[0] for case in STAND_INS}


def fields_of(name):
    return registry.get("dataset", name).model_fields


@absent
def test_stand_in_warns_and_has_its_own_name(case, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_is_reachable", lambda _: pytest.fail("a download was attempted"))
    with pytest.warns(SimulatedDataWarning, match="is unavailable and replaced by") as caught:
        problem = load_absent(case, tmp_path)
    assert problem.name == STAND_INS[case]
    recorded = re.search(r"recorded as (\S+)", str(caught[0].message))
    assert problem.name.startswith(recorded[1])
    # the runner shows warnings of components
    assert "components" in caught[0].filename


@absent
def test_requested_stand_in_does_not_warn(case, tmp_path):
    name = case.split()[0]
    always = {"simulated": True} if "simulated" in fields_of(name) else {"offline": "always"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = load_absent(case, tmp_path, **ASKED.get(name, always))
    assert asked.name == STAND_INS[case]


@absent
def test_absent_files_can_be_an_error(case, tmp_path):
    dataset = component("dataset", case.split()[0], **KEYS.get(case, {}) | {"offline": "error"})
    remedy = r"dataset\.(offline=simulate|set=omniglot-partial)"
    with pytest.raises(DataUnavailableError, match=remedy) as refused:
        dataset.identity(tmp_path, True)
    with pytest.raises(DataUnavailableError, match=re.escape(str(refused.value))):
        load_absent(case, tmp_path, offline="error")
    assert "\n" not in str(refused.value)


# the table of the paper behind airlines was not published
@pytest.mark.parametrize("case", [case for case in STAND_INS if case != "airlines"])
def test_damaged_file_is_not_replaced_by_a_stand_in(case, tmp_path):
    for file in data_files.catalogue():
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"something else")
    with pytest.raises(DamagedFileError, match=r"unexpected content: .* expected"):
        load_absent(case, tmp_path)
