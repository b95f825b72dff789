"""A fitted model in one file predicts like its record, without the data."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from support.runs.configured import load
from support.runs.exported_families import HOUSES, NAMES, TRAIN, fit

from runner import ConfigError, RunnerWarning, load_model
from runner.commands import cli
from runner.python.export.model_file import LIMITS, MODEL, WEIGHTS
from runner.python.export.new_rows import to_documents
from runner.python.export.write_model import write_card
from runner.report import compared_record

NEW = {"area": [50.5, 90.0], "kind": ["hut", "flat"], "sea": [True, False]}


def test_exported_model_predicts_test_rows_like_the_record(exported_model, model):
    _, result, folder = exported_model
    table = pd.read_csv(folder / "data" / HOUSES)
    expected = result.predict(result.problem.test.x)
    same = model.predictive(result.problem.test.x.clone())
    assert torch.equal(same.mu, expected.mu)
    assert torch.equal(same.v, expected.v)
    raw = expected.rescale(result.problem.y_mean, result.problem.y_std)
    predicted = model.predict(table[TRAIN:])
    assert predicted["mean"].tolist() == raw.mean[:, 0].tolist()
    assert predicted["sd"].tolist() == raw.variance.sqrt()[:, 0].tolist()
    assert predicted["q0.05"].tolist() == raw.quantile(0.05)[:, 0].tolist()
    assert predicted.index.tolist() == table.index[TRAIN:].tolist()


def test_row_file_equals_the_frame(exported_model, model, tmp_path):
    rows = pd.DataFrame(NEW)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet")
    expected = model.predict(rows)
    assert model.predict(tmp_path / "rows.csv").equals(expected)
    assert model.predict(str(tmp_path / "rows.parquet")).equals(expected)


def test_training_rows_are_stored_only_if_needed(exported_model, entries, tmp_path):
    assert entries.keys() == set(LIMITS)
    assert not json.loads(entries[MODEL])["holds_training_rows"]
    column = exported_model[1].problem.train.x[:, 0].numpy()
    assert column[:4].tobytes() not in entries[WEIGHTS]
    exact = fit(tmp_path, "exact_gp")
    stored = load_model(exact.export(tmp_path / "gp.zip"))
    assert stored.facts["holds_training_rows"]
    x = exact.problem.test.x
    shutil.rmtree(tmp_path / "data")
    assert torch.equal(stored.predictive(x.clone()).mu, exact.predict(x).mu)


def test_exported_file_contains_no_path_of_the_machine(exported_model, entries):
    assert not [name for name, text in entries.items() if str(exported_model[2]).encode() in text]


def test_card_describes_data_scores_checks_and_citation(exported_model, model):
    result = exported_model[1]
    score = f"| rmse | {result.scores['rmse'].mean:.4g} |"
    data = result.facts["data"]
    for text in (data, score, "## Checks", "no attacker", "@book{rasmussen2006", "| kind | texts"):
        assert text in model.card


def test_scores_of_a_run_with_a_failed_check_are_marked(exported_model, entries, model):
    result = exported_model[1]
    compared = compared_record.load(result.record)
    failed = {"about": "run", "check": "it has converged", "passed": False, "detail": "R̂ 1.2"}
    compared.facts["checks"] = {"0": [failed]}
    card = write_card(json.loads(entries[MODEL]), result.record, compared, model.asked)
    assert f"| rmse | {result.scores['rmse'].mean:.4g}† |" in card
    assert "failed †" in card


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sea": None}, "lacks sea; .*the model reads area, kind, sea"),
        (
            {"kind": ["hut", "castle"]},
            "row 1: kind is 'castle', an unknown category; known ones are",
        ),
        ({"area": ["large", "3"]}, "row 0: area is 'large', not a number"),
        ({"area": [1.0, None]}, "row 1: area is missing"),
        ({"kind": [None, "hut"]}, "row 0: kind is missing"),
    ],
)
def test_rows_that_do_not_fit_are_named(model, change, message):
    rows = pd.DataFrame({k: v for k, v in (NEW | change).items() if v is not None})
    with pytest.raises(ConfigError, match=message):
        model.predict(rows)


def test_rows_without_their_columns_are_named(model, tmp_path):
    with pytest.raises(ConfigError, match=r"kind .*; give a frame"):
        model.predict(np.zeros((2, 3)))
    (tmp_path / "rows.csv").write_text("area,kind,sea\n50,hut,true\n60,hut,maybe\n")
    with pytest.raises(ConfigError, match=r"rows.csv, line 3: sea is 'maybe'"):
        model.predict(tmp_path / "rows.csv")


def test_commands_write_and_predict(exported_model, tmp_path, capsys, monkeypatch):
    file, result, folder = exported_model
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(NEW).to_csv("rows.csv", index=False)
    words = ["export", result.id, "model.zip", "--output-dir", str(folder / "outputs")]
    assert cli._answer(words) == 0
    assert "without training rows" in capsys.readouterr().out
    assert Path("model.zip").read_bytes() == file.read_bytes()
    assert cli._answer(["predict", "model.zip", "rows.csv", "--to", "out.csv"]) == 0
    written = pd.read_csv("out.csv", float_precision="round_trip")
    assert written.equals(load_model("model.zip").predict("rows.csv"))
    run = ["predict", result.id, "--output-dir", str(folder / "outputs")]
    assert cli._answer([*run, "rows.csv", "--to", "out.parquet"]) == 0
    assert pd.read_parquet("out.parquet").equals(written)
    capsys.readouterr()
    assert cli._answer(["predict", "model.zip", "--card"]) == 0
    assert "## Scores" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["export", "RUN"], "no file given"),
        (["export", "RUN", "model.txt"], "must end with .zip"),
        (["export", "RUN", "model.zip", "--register", "a"], "requires --mlflow"),
        (["export", "RUN", "nowhere/model.zip"], "an existing folder"),
        (["predict", "FILE"], "rows are missing; give a frame, or a CSV or Parquet file"),
        (["predict", "FILE", "--horizon", "3"], "horizon applies only to series"),
        (["predict", "FILE", "none.csv"], "none.csv: No such file"),
        (["predict", "FILE", "rows.csv", "--replicate", "4"], "replicate=4"),
    ],
)
def test_invalid_commands_name_the_problem(
    exported_model, tmp_path, capsys, monkeypatch, words, message
):
    file, result, _ = exported_model
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
def test_columns_of_built_in_tables_map_to_the_inputs(dataset, changes):
    problem, _ = load(dataset, **changes)
    x = problem.train.x
    raw = x * problem.columns.scale + problem.columns.mean
    assert problem.columns.n_inputs == problem.n_inputs
    assert torch.allclose(problem.columns.convert(raw), x)
    assert problem.columns.mean.abs().max() > 0.01  # the raw columns, not inputs


def test_documents_are_counted_in_the_models_vocabulary():
    words = ["apple", "saw"]
    rows = pd.DataFrame({"text": ["saw apple saw nail", None]})
    counts = to_documents(rows, words, "rows")
    assert counts.counts.tolist() == [1, 2]
    assert counts.lengths.tolist() == [2, 0]
    assert to_documents(pd.DataFrame({"saw": [2]}), words, "rows").words.tolist() == [1]
    with pytest.raises(ConfigError, match=r"predict: .* column text .* word .*; words are"):
        to_documents(pd.DataFrame({"area": [1.0]}), words, "rows")
    with pytest.raises(ConfigError, match="nonnegative integers"):
        to_documents(pd.DataFrame({"saw": [0.5]}), words, "rows")


def test_table_names_are_kept(exported_model, model):
    assert [column.name for column in model.columns.columns] == NAMES[:3]
    assert model.columns.columns[1].levels == ("flat", "house", "hut")
    assert model.columns.columns[2].type == "true or false"


def test_rows_without_a_finite_prediction_are_counted(model, monkeypatch):
    predictive = model.predictive(np.zeros((2, 4)))
    predictive.mu[:, 1] = np.nan
    monkeypatch.setattr(type(model.asked), "ask", lambda *_: predictive)
    with pytest.warns(RunnerWarning, match="1 of 2 predictions .*; their cells are empty"):
        frame = model.predict(pd.DataFrame(NEW))
    assert frame["mean"].isna().tolist() == [False, True]
    assert frame["q0.5"].isna().tolist() == [False, True]
