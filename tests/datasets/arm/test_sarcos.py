"""SARCOS: the protocol of A.1.2, the three splits, and what takes the place of files that cannot be
had."""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from pydantic import ValidationError
from scipy.io import savemat

from components.contracts.roles import Setting
from components.datasets import files
from components.datasets.arm import protocol, sarcos, simulation
from components.datasets.arm.protocol import moments, observed_labels
from components.datasets.arm.sarcos import Sarcos
from components.errors import DamagedFileError, DataUnavailableError, SimulatedDataWarning
from runner.execution.rng import STREAMS, Streams

YAML = Path(__file__).parents[3] / "conf" / "dataset" / "sarcos.yaml"
SIZES = {
    "sarcos/sarcos_inv.mat": protocol.TRAIN_ROWS,
    "sarcos/sarcos_inv_test.mat": protocol.TEST_ROWS,
}
REAL = os.environ.get("RUNNER_DATA_DIR")
needs_real_file = pytest.mark.skipif(
    not REAL or not (Path(REAL) / "sarcos" / "sarcos_inv_test.mat").is_file(),
    reason="RUNNER_DATA_DIR is not set or has no sarcos/sarcos_inv_test.mat",
)


def forget() -> None:
    for cached in (files.why_unavailable, sarcos._read, simulation.simulated_rows):
        cached.cache_clear()
    files.forget()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    """Nothing is found in, or written to, the user's own cache; the simulated world is small."""
    monkeypatch.setattr(files.platformdirs, "user_cache_path", lambda _: tmp_path / "cache")
    generate, small = simulation.simulate, {"train": 4_000, "test": 1_500}
    monkeypatch.setattr(simulation, "simulate", lambda world: generate(replace(world, rows=small)))
    forget()
    yield
    forget()


@pytest.fixture(scope="session")
def published(tmp_path_factory) -> Path:
    """A data folder of files in the published form and size; a row's entries say which row it
    is."""
    folder = tmp_path_factory.mktemp("published")
    for path, n in SIZES.items():
        row = np.arange(n)[:, None]
        first = 0 if n == protocol.TRAIN_ROWS else 1_000_000
        rows = np.concatenate(
            [(first + row) * np.arange(1, 22), np.sin(first + row) * np.arange(10, 80, 10)], 1
        )
        (folder / path).parent.mkdir(exist_ok=True)
        savemat(folder / path, {(folder / path).stem: rows.astype(np.float64)})
    return folder


@pytest.fixture
def genuine(published, monkeypatch) -> Path:
    """The same folder, with a catalogue in which its files are the genuine ones."""
    catalogue = tuple(
        replace(
            f,
            urls=(),
            sha256=hashlib.sha256((published / f.path).read_bytes()).hexdigest(),
            git_blob=None,
        )
        for f in files.catalogue()
        if f.path in SIZES
    )
    monkeypatch.setattr(files, "catalogue", lambda: catalogue)
    return published


@pytest.fixture
def no_network(monkeypatch):
    monkeypatch.setattr(files, "_reachable", lambda _: set())


def dataset(**overrides) -> Sarcos:
    return Sarcos(**(yaml.safe_load(YAML.read_text()) | overrides))


def setting(data_dir: Path, offline: bool = False, dtype: torch.dtype = torch.float64) -> Setting:
    return Setting(data_dir, torch.device("cpu"), dtype, replicates=1, offline=offline)


def load(data_dir: Path, seed: int = 0, replicate: int = 0, **overrides):
    return dataset(**overrides).load(Streams(seed, replicate), setting(data_dir))


# ---- the protocol
# ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("k", [1, 2, 5, 7])
def test_every_row_has_as_many_labels_each_equally_likely(k):
    n = 20_000
    mask = observed_labels(n, k, Streams(0).data)
    assert mask.sum(1).unique().tolist() == [k]
    p = k / 7
    error = (mask.double().mean(0) - p) / max((p * (1 - p) / n) ** 0.5, 1e-12)
    assert error.abs().max() < 4, "standard errors"
    if k == 2:  # which two: all 21 pairs equally likely
        pairs = (mask.double().T @ mask.double()).triu(1)
        frequency = pairs[pairs > 0] / n
        assert len(frequency) == 21
        assert ((frequency - 1 / 21) / (1 / 21 * 20 / 21 / n) ** 0.5).abs().max() < 4


def test_moments_are_those_of_the_observed_labels():
    y = torch.randn(50, 7, generator=Streams(1).data, dtype=torch.float64) * torch.arange(1, 8)
    mask = observed_labels(50, 2, Streams(0).data)
    mean, std = moments(torch.where(mask, y, torch.full_like(y, 1e6)), mask)
    for t in range(7):
        seen = [float(v) for v, m in zip(y[:, t], mask[:, t], strict=True) if m]
        assert float(mean[t]) == pytest.approx(np.mean(seen))
        assert float(std[t]) == pytest.approx(np.std(seen))


def test_moments_of_tasks_with_no_or_one_label():
    y = torch.tensor([[1.0, 5.0, 0.0], [3.0, 9.0, 0.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    mean, std = moments(y, mask)
    assert mean.tolist() == [2.0, 5.0, 0.0]
    pooled = (2 / 3) ** 0.5  # squares 1, 1, 0 over three labels
    assert std.tolist() == pytest.approx([1.0, pooled, pooled])
    mean, std = moments(y[:1], mask[:1])
    assert std.tolist() == [1.0, 1.0, 1.0]


def test_everything_is_standardised_by_what_is_observed_in_training(genuine):
    problem = load(genuine, n_train=500)
    x, y, mask = problem.train.x, problem.train.y, problem.train.mask
    torch.testing.assert_close(x.mean(0), torch.zeros(21, dtype=x.dtype), atol=1e-10, rtol=0)
    torch.testing.assert_close(x.std(0, correction=0), torch.ones(21, dtype=x.dtype))
    for t in range(7):
        seen = y[mask[:, t], t]
        assert abs(float(seen.mean())) < 1e-10
        assert float(seen.std(correction=0)) == pytest.approx(1)
    assert (y[~mask] == 0).all()
    assert problem.test.mask.all()
    # y_mean and y_std lead back to the torques of the file.
    torques = problem.test.y * problem.y_std + problem.y_mean
    expected = np.sin(1_000_000 + np.arange(4_449))[:, None] * np.arange(10, 80, 10)
    np.testing.assert_allclose(torques, expected, atol=1e-9)


def test_a_constant_input_does_no_harm():
    x = np.random.RandomState(0).standard_normal((30, 21))
    x[:, 3] = 2.5
    y = np.random.RandomState(1).standard_normal((30, 7))
    problem = dataset(n_train=20).make_problem("toy", (x, y), (x, y), Streams(0), setting(Path()))
    assert (problem.train.x[:, 3] == 0).all()
    assert problem.train.x.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_have_the_type_asked_for(genuine, dtype):
    problem = dataset(n_train=50).load(Streams(0), setting(genuine, dtype=dtype))
    tensors = (
        problem.train.x,
        problem.train.y,
        problem.test.x,
        problem.test.y,
        problem.y_mean,
        problem.y_std,
    )
    assert {t.dtype for t in tensors} == {dtype}
    assert problem.train.mask.dtype == torch.bool


def test_replicates_differ_and_repeat_and_draw_from_the_data_stream_alone(genuine):
    a, again, other = (load(genuine, replicate=r, n_train=100) for r in (0, 0, 1))
    torch.testing.assert_close(a.train.x, again.train.x, rtol=0, atol=0)
    assert torch.equal(a.train.mask, again.train.mask)
    assert not torch.equal(a.train.x, other.train.x)
    rng, untouched = Streams(0), Streams(0).state()
    dataset(n_train=100).load(rng, setting(genuine))
    changed = [name for name in STREAMS if not torch.equal(rng.state()[name], untouched[name])]
    assert changed == ["data"]


@pytest.mark.parametrize("split", ["official", "test_file"])
def test_a_smaller_training_set_is_part_of_a_larger_one(genuine, split):
    """So that a learning curve is paired: the same test rows, and rows and labels only added."""
    small, large = (load(genuine, split=split, n_train=n, labels_per_row=2) for n in (100, 1000))
    assert torch.equal(small.train.mask, large.train.mask[:100])
    torques = [p.train.y * p.y_std + p.y_mean for p in (small, large)]
    torch.testing.assert_close(torques[0][small.train.mask], torques[1][:100][small.train.mask])
    tests = [p.test.y * p.y_std + p.y_mean for p in (small, large)]
    torch.testing.assert_close(*tests)


def test_labels_do_not_depend_on_how_many_rows_are_tested(genuine):
    a, b = load(genuine, n_train=100), load(genuine, n_train=100, n_test=10)
    assert torch.equal(a.train.x, b.train.x)
    assert b.test.x.shape == (10, 21)


# ---- the splits
# ------------------------------------------------------------------------------------------------------
def test_official_split(genuine):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = load(genuine, n_train=2000)
    assert problem.name == "sarcos" == dataset().identity(genuine, offline=False)
    assert problem.train.x.shape == (2000, 21)
    assert problem.test.x.shape == (4_449, 21)
    # All test inputs lie beyond all training inputs in these files: none comes from the other.
    assert problem.train.x[:, 0].max() < problem.test.x[:, 0].min()
    assert len(problem.train.x[:, 0].unique()) == 2000, "drawn without replacement"


def test_test_file_split_never_trains_on_a_test_row(genuine):
    problem = load(genuine, split="test_file", n_train=3_449)
    assert (
        problem.name
        == "sarcos-test-file"
        == dataset(split="test_file").identity(genuine, offline=True)
    )
    assert problem.train.x.shape == (3_449, 21)
    assert problem.test.x.shape == (1_000, 21)
    x = torch.cat([problem.train.x, problem.test.x])[:, 0]
    assert len(x.unique()) == 4_449, "together they are the whole file"
    assert not torch.equal(x, x.sort().values)


def test_test_file_split_needs_the_test_file_alone(genuine, tmp_path, no_network):
    only = tmp_path / "data" / "sarcos"
    only.mkdir(parents=True)
    (only / "sarcos_inv_test.mat").write_bytes(
        (genuine / "sarcos" / "sarcos_inv_test.mat").read_bytes()
    )
    assert load(tmp_path / "data", split="test_file").name == "sarcos-test-file"
    with pytest.warns(SimulatedDataWarning):
        assert load(tmp_path / "data", split="official").name == "sarcos-sim"


def test_simulated_split_is_no_surprise_and_needs_no_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = load(tmp_path, split="simulated", offline="error")
    assert (
        problem.name == "sarcos-sim" == dataset(split="simulated").identity(tmp_path, offline=True)
    )
    assert problem.test.x.shape == (1_500, 21)


# ---- files that cannot be had
# ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("split", ["official", "test_file"])
def test_simulation_takes_the_place_loudly_and_under_its_own_name(tmp_path, no_network, split):
    with pytest.warns(SimulatedDataWarning) as caught:
        problem = load(tmp_path / "data", split=split)
    (warning,) = caught
    assert Path(warning.filename).name == "sarcos.py", "the runner shows what components warn of"
    message = str(warning.message)
    assert message.startswith(
        f"SIMULATED DATA: dataset.split={split} cannot be had, a simulated seven-joint arm takes its"
    )
    assert "recorded as sarcos-sim" in message
    assert "runner data fetch sarcos" in message
    assert (
        problem.name
        == "sarcos-sim"
        == dataset(split=split).identity(tmp_path / "data", offline=False)
    )
    assert problem.describe()["data"] == "sarcos-sim"
    assert problem.test.x.shape[0] == (1_000 if split == "test_file" else 1_500)


def test_offline_error_is_an_error(tmp_path, no_network):
    chosen = dataset(offline="error")
    for attempt in (
        lambda: chosen.identity(tmp_path, offline=False),
        lambda: chosen.load(Streams(0), setting(tmp_path)),
        lambda: chosen.load(Streams(0), setting(tmp_path, offline=True)),
    ):
        with pytest.raises(
            DataUnavailableError, match=r"sarcos_inv\.mat: not in .*dataset\.offline=simulate"
        ):
            attempt()


def test_offline_runs_attempt_no_download(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fetch", lambda *_: pytest.fail("a download was attempted"))
    assert dataset().identity(tmp_path, offline=True) == "sarcos-sim"


def test_a_damaged_file_is_not_replaced_by_the_simulation(genuine, tmp_path, no_network):
    for path in SIZES:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes((genuine / path).read_bytes()[:-1])
    for attempt in (
        lambda: dataset().identity(tmp_path, offline=False),
        lambda: load(tmp_path),
        lambda: load(tmp_path, split="test_file"),
    ):
        with pytest.raises(DamagedFileError, match="expected"):
            attempt()


def test_a_file_that_arrives_later_does_not_change_what_was_announced(
    genuine, tmp_path, no_network
):
    announced = dataset(split="test_file").identity(tmp_path, offline=False)
    (tmp_path / "sarcos").mkdir()
    (tmp_path / "sarcos" / "sarcos_inv_test.mat").write_bytes(
        (genuine / "sarcos" / "sarcos_inv_test.mat").read_bytes()
    )
    with pytest.warns(SimulatedDataWarning):
        assert load(tmp_path, split="test_file").name == announced == "sarcos-sim"
    forget()  # the next process
    assert dataset(split="test_file").identity(tmp_path, offline=False) == "sarcos-test-file"


# ---- mistakes
# --------------------------------------------------------------------------------------------------------
def test_more_training_rows_than_there_are(tmp_path, no_network):
    message = r"n_train=5000: split=test_file leaves 3449 of its 4449 rows for training; set dataset\.n_train to at most 3449"
    with pytest.raises(ValidationError, match=message):
        dataset(split="test_file", n_train=5000)
    with pytest.raises(ValidationError, match=r"leaves 449 of its 4449 rows.*dataset\.n_test"):
        dataset(split="test_file", n_train=450, n_test=4000)
    dataset(split="test_file", n_train=3449)
    with pytest.raises(ValidationError):
        dataset(n_train=44_485)
    with (
        pytest.warns(SimulatedDataWarning),
        pytest.raises(
            ValueError,
            match=r"dataset\.n_train=4001: sarcos-sim has 4000 training rows; set it to at most 4000",
        ),
    ):
        load(tmp_path, n_train=4001)  # the small world of these tests


@pytest.mark.parametrize(
    "wrong",
    [{"split": "train"}, {"offline": "ask"}, {"labels_per_row": 0}, {"labels_per_row": 8}, {"n_train": 0}, {"n_test": 0},
     {"batch_size": 0}, {"n_trian": 5}, {"n_train": 10.0}],
)  # fmt: skip
def test_refused_values(wrong):
    with pytest.raises(ValidationError):
        dataset(**wrong)


# ---- the real test file
# ----------------------------------------------------------------------------------------------
@needs_real_file
def test_real_test_file():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = load(Path(REAL), split="test_file", n_train=1000)
    assert problem.name == "sarcos-test-file"
    assert problem.train.x.shape == (1000, 21)
    assert problem.test.x.shape == (1000, 21)
    assert problem.train.mask.sum(1).unique().tolist() == [1]
    assert problem.test.y.isfinite().all()
    # The standardised labels of test rows are of order one: training and test rows are of one kind.
    assert 0.7 < float(problem.test.y.std(0).min()) <= float(problem.test.y.std(0).max()) < 1.4
    everything = load(Path(REAL), split="test_file", n_train=3449, labels_per_row=7)
    rows = torch.cat([everything.train.x, everything.test.x])
    assert len(torch.unique(rows, dim=0)) == 4_449, "no duplicate rows, none in both"


@needs_real_file
def test_a_linear_model_on_the_real_test_file():
    """Least squares on 3,449 rows with all labels: RMSE 0.34 of a standard deviation."""
    problem = load(Path(REAL), split="test_file", n_train=3449, labels_per_row=7)
    design = [
        torch.cat([b.x, torch.ones_like(b.x[:, :1])], 1) for b in (problem.train, problem.test)
    ]
    weights = torch.linalg.lstsq(design[0], problem.train.y).solution
    rmse = ((design[1] @ weights - problem.test.y) ** 2).mean(0).sqrt().mean()
    assert 0.31 < float(rmse) < 0.38
