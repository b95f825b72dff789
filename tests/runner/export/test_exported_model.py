"""A fitted model as one file: it predicts what the record predicts, without the data."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.torch as st
import torch
from support.runs.configured import load
from support.runs.exported_families import HOUSES, NAMES, TRAIN, fit

from runner import ConfigError, RunnerWarning, load_model
from runner.commands import cli
from runner.python.export.model_file import LIMITS, MODEL, WEIGHTS
from runner.python.export.new_rows import to_documents

NEW = {"area": [50.5, 90.0], "kind": ["hut", "flat"], "sea": [True, False]}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The file of a sparse Gaussian process, its result, and the folder of both."""
    folder = tmp_path_factory.mktemp("fitted")
    result = fit(folder, "sparse_gp")
    return result.export(folder / "fitted.zip"), result, folder


@pytest.fixture(scope="module")
def model(fitted):
    return load_model(fitted[0])


def edit(source: Path, target: Path, changes: dict[str, bytes | None]) -> Path:
    """A copy of a file with other entries; None: without the entry."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = changes.get(name, old.read(name))
            if content is not None:
                new.writestr(name, content, zipfile.ZIP_DEFLATED)
        for name in changes.keys() - set(old.namelist()):
            new.writestr(name, changes[name], zipfile.ZIP_DEFLATED)
    return target


def test_predicts_rows_of_the_file_as_the_record_predicts_the_test_rows(fitted, model):
    _, result, folder = fitted
    table = pd.read_csv(folder / "data" / HOUSES)
    expected = result.predict(result.problem.test.x)
    same = model.predictive(result.problem.test.x.clone())
    assert torch.equal(same.mu, expected.mu)
    assert torch.equal(same.v, expected.v)
    raw = expected.rescale(result.problem.y_mean, result.problem.y_std)
    found = model.predict(table[TRAIN:])
    assert found["mean"].tolist() == raw.mean[:, 0].tolist()
    assert found["sd"].tolist() == raw.variance.sqrt()[:, 0].tolist()
    assert found["q0.05"].tolist() == raw.quantile(0.05)[:, 0].tolist()
    assert found.index.tolist() == table.index[TRAIN:].tolist()


def test_a_file_of_rows_is_read_as_the_frame(fitted, model, tmp_path):
    rows = pd.DataFrame(NEW)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet")
    expected = model.predict(rows)
    assert model.predict(tmp_path / "rows.csv").equals(expected)
    assert model.predict(str(tmp_path / "rows.parquet")).equals(expected)


def test_training_rows_are_stored_only_where_the_posterior_needs_them(fitted, tmp_path):
    file, result, _ = fitted
    with zipfile.ZipFile(file) as archive:
        assert sorted(archive.namelist()) == sorted(LIMITS)
        weights = archive.read(WEIGHTS)
        facts = json.loads(archive.read(MODEL))
    assert not facts["holds_training_rows"]
    column = result.problem.train.x[:, 0].numpy()
    assert column[:4].tobytes() not in weights
    exact = fit(tmp_path, "exact_gp")
    stored = load_model(exact.export(tmp_path / "gp.zip"))
    assert stored.facts["holds_training_rows"]
    x = exact.problem.test.x
    shutil.rmtree(tmp_path / "data")
    assert torch.equal(stored.predictive(x.clone()).mu, exact.predict(x).mu)


def test_no_path_of_the_machine_is_in_the_file(fitted, tmp_path):
    with zipfile.ZipFile(fitted[0]) as archive:
        for name in archive.namelist():
            assert str(fitted[2]).encode() not in archive.read(name)


def test_the_card_tells_data_scores_checks_threat_and_citation(fitted, model):
    _, result, _ = fitted
    card = model.card
    for text in (
        result.facts["data"],
        "## Checks",
        "no attacker",
        "@book{rasmussen2006",
        "| kind | texts",
    ):
        assert text in card
    assert f"| rmse | {result.scores['rmse'].mean:.4g} |" in card


def test_scores_of_a_run_with_a_failed_check_are_marked(fitted):
    from runner.python.export.card import write_card
    from runner.report import compared_record

    file, result, _ = fitted
    compared = compared_record.load(result.record)
    failed = {"about": "run", "check": "it has converged", "passed": False, "detail": "R̂ 1.2"}
    compared.facts["checks"] = {"0": [failed]}
    with zipfile.ZipFile(file) as archive:
        facts = json.loads(archive.read(MODEL))
    card = write_card(facts, result.record, compared, "labels")
    assert f"| rmse | {result.scores['rmse'].mean:.4g}† |" in card
    assert "failed †" in card


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sea": None}, "lacks sea; .*the model reads area, kind, sea"),
        (
            {"kind": ["hut", "castle"]},
            "row 1: kind is 'castle', an unknown category; those learnt are",
        ),
        ({"area": ["large", "3"]}, "row 0: area is 'large', no number"),
        ({"area": [1.0, None]}, "row 1: area is missing"),
        ({"kind": [None, "hut"]}, "row 0: kind is missing"),
    ],
)
def test_rows_that_do_not_fit_are_named(model, change, message):
    rows = pd.DataFrame({k: v for k, v in (NEW | change).items() if v is not None})
    with pytest.raises(ConfigError, match=message):
        model.predict(rows)


def test_numbers_without_names_are_refused_where_a_column_holds_texts(model):
    with pytest.raises(ConfigError, match="kind holds texts; give a frame"):
        model.predict(np.zeros((2, 3)))


def test_a_cell_of_a_file_is_named_by_its_line(model, tmp_path):
    (tmp_path / "rows.csv").write_text("area,kind,sea\n50,hut,true\n60,hut,maybe\n")
    with pytest.raises(ConfigError, match=r"rows.csv, line 3: sea is 'maybe', no number"):
        model.predict(tmp_path / "rows.csv")


def test_what_is_no_model_is_refused(fitted, tmp_path):
    file, _, _ = fitted
    with pytest.raises(FileNotFoundError, match=r"none\.zip"):
        load_model(tmp_path / "none.zip")
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(ConfigError, match="no model of runner export"):
        load_model(tmp_path / "text.zip")
    (tmp_path / "half.zip").write_bytes(file.read_bytes()[:2000])
    with pytest.raises(ConfigError, match="no model of runner export"):
        load_model(tmp_path / "half.zip")


def changed(facts: bytes, **values: object) -> bytes:
    return json.dumps(json.loads(facts) | values).encode()


@pytest.mark.parametrize(
    ("entry", "content", "message"),
    [
        ("../evil.py", b"print()", r"holds '\.\./evil\.py'"),
        ("code.pkl", b"cos\nsystem\n", "holds 'code.pkl'"),
        ("config.yaml", None, "holds 0 files config.yaml"),
        ("README.md", b" " * 4_900_000, "README.md has 4,900,000 bytes"),
        (WEIGHTS, b"\x00" * 64, "its checksum differs"),
        (MODEL, b"[" * 10_000, "model.json is damaged"),
        (MODEL, b"{}", "model.json is damaged"),
    ],
)
def test_entries_of_strangers_are_refused(fitted, tmp_path, entry, content, message):
    file = edit(fitted[0], tmp_path / "edited.zip", {entry: content})
    with pytest.raises(ConfigError, match=message):
        load_model(file)


def test_a_foreign_card_has_no_control_characters(fitted, tmp_path):
    edited = edit(fitted[0], tmp_path / "edited.zip", {"README.md": b"a\x1b]0;owned\x07\n"})
    assert load_model(edited).card == "a␛]0;owned␇\n"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": 2}, "has format 2, written by runner .*, and this version reads format 1"),
        ({"problem": {"class": "Popen", "fields": {}}}, "no problem has a part 'Popen'"),
        ({"problem": {"class": "Batch", "fields": {}}}, "damaged"),
        (
            {"problem": {"noise": "normal", "shape": [10**9, 10**3], "dtype": "float64"}},
            "more than 268,435,456 numbers",
        ),
        ({"skeleton": {"state": {"t": "none"}, "streams": {"v": 1}}}, "does not fit this version"),
        ({"replicate": "x"}, "damaged|does not fit"),
    ],
)
def test_facts_of_strangers_are_refused(fitted, tmp_path, values, message):
    with zipfile.ZipFile(fitted[0]) as archive:
        facts = archive.read(MODEL)
    file = edit(fitted[0], tmp_path / "edited.zip", {MODEL: changed(facts, **values)})
    with pytest.raises(ConfigError, match=message):
        load_model(file)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"evaluation_chunk": {"value": 0}}, "evaluation_chunk is 0, must be 1 to"),
        ({"evaluation_chunk": {"value": -3}}, "evaluation_chunk is -3, must be 1 to"),
        ({"n_classes": {"value": 10**12}}, "n_classes is 1000000000000, must be 1 to"),
        ({"n_classes": {"value": 3}, "class_names": {"list": [{"value": "a"}]}}, "1 class_names of 3 classes"),
        ({"n_classes": {"value": 2}, "class_names": {"list": [{"value": "a"}] * 2}}, "names are repeated: a, a"),
        ({"columns": {"tuple": [{"class": "InputColumn", "fields": {
            "name": {"value": "a"}, "type": {"value": "numbers"}, "levels": {"tuple": []}}}] * 2}}, "names are repeated: a, a"),
    ],
)  # fmt: skip
def test_forged_sizes_and_names_are_refused(fitted, tmp_path, fields, message):
    with zipfile.ZipFile(fitted[0]) as archive:
        facts = archive.read(MODEL)
    problem = json.loads(facts)["problem"]
    problem["fields"] |= fields
    file = edit(fitted[0], tmp_path / "edited.zip", {MODEL: changed(facts, problem=problem)})
    with pytest.raises(ConfigError, match=message):
        load_model(file)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "plugins: []",
            "plugins: [this_is_evil]",
            "imports this_is_evil, code that is not the runner's",
        ),
        ("name: igp", "name: igpp", "igpp"),
        ("seed: 0", "seed: -1", "seed"),
    ],
)
def test_the_config_is_checked_as_any(fitted, tmp_path, old, new, message):
    with zipfile.ZipFile(fitted[0]) as archive:
        config = archive.read("config.yaml").decode()
    assert old in config
    edited = {"config.yaml": config.replace(old, new, 1).encode()}
    with pytest.raises(ConfigError, match=message):
        load_model(edit(fitted[0], tmp_path / "edited.zip", edited))


def test_commands_write_and_predict(fitted, tmp_path, capsys, monkeypatch):
    file, result, folder = fitted
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(NEW).to_csv("rows.csv", index=False)
    words = ["export", result.id, "model.zip", "--output-dir", str(folder / "outputs")]
    assert cli._answer(words) == 0
    assert "without training rows" in capsys.readouterr().out
    assert Path("model.zip").read_bytes() == file.read_bytes()
    assert cli._answer(["predict", "model.zip", "rows.csv", "--to", "out.csv"]) == 0
    written = pd.read_csv("out.csv", float_precision="round_trip")
    assert written.equals(load_model("model.zip").predict("rows.csv"))
    assert cli._answer(["predict", "model.zip", "rows.csv", "--to", "out.parquet"]) == 0
    assert pd.read_parquet("out.parquet").equals(written)
    capsys.readouterr()
    assert cli._answer(["predict", "model.zip", "--card"]) == 0
    assert "## Scores" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["export", "RUN"], "no file; name one"),
        (["export", "RUN", "model.txt"], "the file is a zip"),
        (["export", "RUN", "model.zip", "--register", "a"], "add --mlflow"),
        (["export", "RUN", "nowhere/model.zip"], "a folder that exists"),
        (["predict", "FILE"], "no rows; give a frame, or a CSV or Parquet file"),
        (["predict", "FILE", "--horizon", "3"], "horizon is for series"),
        (["predict", "FILE", "none.csv"], "none.csv: No such file"),
        (["predict", "FILE", "rows.csv", "--replicate", "4"], "replicate=4"),
    ],
)
def test_commands_name_what_is_wrong(fitted, tmp_path, capsys, monkeypatch, words, message):
    file, result, _ = fitted
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(NEW).to_csv("rows.csv", index=False)
    names = {"RUN": str(result.record), "FILE": str(file)}
    assert cli._answer([names.get(word, word) for word in words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("dataset", "changes"),
    [
        ("airfoil", {"simulated": True}),
        ("uci_regression", {"set": "yacht", "simulated": True}),
        ("uci_classification", {"set": "crabs", "simulated": True}),
        ("titanic", {}),
        ("sarcos_sim", {"n_train": 60, "n_test": 20}),
    ],
)
def test_columns_of_built_in_tables_lead_to_the_inputs(dataset, changes):
    problem, _ = load(dataset, **changes)
    x = problem.train.x
    raw = x * problem.columns.scale + problem.columns.mean
    assert problem.columns.n_inputs == problem.n_inputs
    assert torch.allclose(problem.columns.convert(raw), x)
    assert float(problem.columns.mean.abs().max()) > 0.01  # the raw columns, not inputs


def test_documents_are_counted_in_the_words_of_the_model():
    words = ["apple", "saw"]
    rows = pd.DataFrame({"text": ["saw apple saw nail", None]})
    counts = to_documents(rows, words, "rows")
    assert counts.counts.tolist() == [1, 2]
    assert counts.lengths.tolist() == [2, 0]
    assert to_documents(pd.DataFrame({"saw": [2]}), words, "rows").words.tolist() == [1]
    with pytest.raises(ConfigError, match="neither a column text nor one named by a word"):
        to_documents(pd.DataFrame({"area": [1.0]}), words, "rows")
    with pytest.raises(ConfigError, match="whole numbers"):
        to_documents(pd.DataFrame({"saw": [0.5]}), words, "rows")


def test_names_of_the_table(fitted, model):
    assert [column.name for column in model.columns.columns] == NAMES[:3]
    assert model.columns.columns[1].levels == ("flat", "house", "hut")
    assert model.columns.columns[2].type == "true or false"


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("part", ["state.", "columns.scale", "problem.y_std"])
def test_weights_that_are_not_finite_are_refused(fitted, tmp_path, part, value):
    with zipfile.ZipFile(fitted[0]) as archive:
        weights, facts = st.load(archive.read(WEIGHTS)), archive.read(MODEL)
    name = next(n for n in weights if part in n and weights[n].is_floating_point())
    weights[name].view(-1)[-1] = value
    content = st.save(weights)
    facts = changed(facts, weights_sha256=hashlib.sha256(content).hexdigest())
    file = edit(fitted[0], tmp_path / "forged.zip", {WEIGHTS: content, MODEL: facts})
    with pytest.raises(ConfigError, match=f"{name} in {WEIGHTS} holds numbers that are not finite"):
        load_model(file)


def test_rows_without_a_finite_prediction_are_counted(model, monkeypatch):
    predictive = model.predictive(np.zeros((2, 4)))
    predictive.mu[:, 1] = np.nan
    monkeypatch.setattr(type(model), "predictive", lambda self, x, **_: predictive)
    with pytest.warns(RunnerWarning, match="1 of 2 predictions are not finite"):
        frame = model.predict(pd.DataFrame(NEW))
    assert frame["mean"].isna().tolist() == [False, True]
    assert frame["q0.5"].isna().tolist() == [False, True]
