"""Commands on a damaged record report the file in a line, or do not need it."""

import itertools
import json
import shutil
import sys
import warnings

import pytest
import yaml
from matplotlib.figure import Figure
from support.runs.sketched import save_sketch

from runner.commands import cli
from runner.study import one_run, snapshot, study

STUDY = {
    "name": "small",
    "description": "Two runs.",
    "overrides": [
        *("dataset=linear_simulation", "dataset.n_train=20", "dataset.n_test=10", "steps=10"),
        *("model=linear_regression", "inference=sgld", "inference.burn_in=2", "offline=true"),
        *("inference.thinning=1", "keep_predictions=true", "tracking=false"),
    ],
    "rows": [
        {"label": name, "model": name, "preset": "", "overrides": [f"seed={seed}"]}
        for seed, name in enumerate("ab")
    ],
    "tables": [{"name": "t", "title": "t", "columns": {"all": "rmse"}, "better": "lower"}],
}
READERS = [
    ["report", "small"],
    ["compare"],
    ["runs", "steps=10"],
    ["export", "x.zip"],
    ["study", "small.yaml", "--status"],
    ["archive", "small"],
    ["resume"],
]
DAMAGES = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "list": lambda _: b"[1]",
    "nested": lambda _: b"[" * 100_000,
    "binary": lambda _: bytes(range(128, 256)),
}
FILES = ["run.json", "config.yaml", "metrics.jsonl", "predictions/0.csv", "posterior.nc"]
VALUES = [None, -1.5, "x", [[1]], {"0": [1]}, {"rmse": "x"}, 10**400, "\ud800"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Folder with a finished study, and a copy of it."""
    folder = tmp_path_factory.mktemp("damaged") / "place"
    folder.mkdir()
    (folder / "small.yaml").write_text(yaml.safe_dump(STUDY))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(study, "launch", lambda *_: 0)
        patch.setattr(Figure, "savefig", save_sketch)
        assert study.main(["study", "small.yaml"]) == 0
        frozen = snapshot.load("small", folder / "outputs")
        for run in frozen.runs:
            path = snapshot.location("small", folder / "outputs")
            assert one_run.main([str(path), run.name]) == 0
    shutil.copytree(folder, folder.with_name("copy"))
    return folder


@pytest.fixture
def record(place, monkeypatch):
    shutil.rmtree(place)
    shutil.copytree(place.with_name("copy"), place)
    monkeypatch.chdir(place)
    monkeypatch.setattr(Figure, "savefig", save_sketch)
    return min((place / "outputs" / "small").glob("[0-9a-f]*"))


@pytest.fixture
def answer(monkeypatch, capfd):
    """Output of a command on two records, the first one damaged, without a traceback."""

    def call(words, record):
        runs = {"compare": [record.name, max(record.parent.glob("[0-9a-f]*")).name]}
        runs |= {"export": [record.name], "resume": [record.name]}
        argv = [words[0], *runs.get(words[0], []), *words[1:]]
        monkeypatch.setattr(sys, "argv", ["runner", *argv])
        warnings.simplefilter("always")  # each command is a separate process
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, error = capfd.readouterr()
        assert end.value.code in (0, 1, 2), (argv, error)
        assert "Traceback" not in error, (argv, error)
        assert "internal error" not in error, (argv, error)
        return out + error

    return call


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    "damage", ["cut", *(pytest.param(d, marks=pytest.mark.slow) for d in [*DAMAGES][1:])]
)
def test_each_command_names_a_damaged_file(file, damage, record, answer):
    content = DAMAGES[damage]((record / file).read_bytes())
    for words in READERS:  # a command may restore the file
        (record / file).write_bytes(content)
        assert file in answer(words, record), words


@pytest.mark.slow
def test_fact_of_another_type_causes_no_traceback(record, answer):
    facts = json.loads((record / "run.json").read_text())
    for key, value in itertools.product(facts, VALUES):
        (record / "run.json").write_text(json.dumps(facts | {key: value}))
        for words in READERS[:5]:
            answer(words, record)
