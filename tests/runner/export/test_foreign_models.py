"""Untrusted model files are refused if damaged, forged or of another version."""

import hashlib
import json

import numpy as np
import pytest
import safetensors.torch as st

from runner import ConfigError, load_model
from runner.python.export.model_file import MODEL, WEIGHTS

COLUMN = {
    "class": "InputColumn",
    "fields": {"name": "a", "type": "numbers", "levels": {"tuple": []}},
}


def test_file_without_a_model_is_refused(entries, exported_model, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.zip"):
        load_model(tmp_path / "none.zip")
    for content in (b"no zip", exported_model[0].read_bytes()[:2000]):
        (tmp_path / "half.zip").write_bytes(content)
        with pytest.raises(
            ConfigError, match=r"not a model of runner export.*; write one with runner export"
        ):
            load_model(tmp_path / "half.zip")


@pytest.mark.parametrize(
    ("entry", "content", "message"),
    [
        ("../evil.py", b"print()", r"unexpected file '\.\./evil\.py'"),
        ("code.pkl", b"cos\nsystem\n", "unexpected file 'code.pkl'"),
        ("config.yaml", None, "has 0 files config.yaml"),
        ("README.md", b" " * 4_900_000, "README.md has 4,900,000 bytes"),
        (WEIGHTS, b"\x00" * 64, "checksum mismatch"),
        (MODEL, b"[" * 10_000, "model.json is damaged"),
        (MODEL, b"{}", "model.json is damaged"),
    ],
)
def test_foreign_entries_are_refused(edit, entry, content, message):
    with pytest.raises(ConfigError, match=message):
        load_model(edit({entry: content}))


def test_foreign_card_has_no_control_characters(edit):
    assert load_model(edit({"README.md": b"a\x1b]0;owned\x07\n"})).card == "a␛]0;owned␇\n"


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"format": 2}, "format 2, written by runner .*; this version reads format 1"),
        ({"problem": {"class": "Popen", "fields": {}}}, "unknown part 'Popen'"),
        ({"problem": {"class": "Batch", "fields": {}}}, "damaged"),
        (
            {"problem": {"noise": [0, 1], "shape": [10**9, 10**3], "dtype": "float64"}},
            "more than 268,435,456 numbers",
        ),
        (
            {"skeleton": {"state": {"t": "none"}, "streams": {"v": 1}}},
            "incompatible with this version",
        ),
        ({"replicate": "x"}, "damaged|incompatible"),
    ],
)
def test_foreign_facts_are_refused(edit, facts, message):
    with pytest.raises(ConfigError, match=message):
        load_model(edit({}, **facts))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"evaluation_chunk": 0}, "evaluation_chunk is 0, but must be 1 to"),
        ({"evaluation_chunk": -3}, "evaluation_chunk is -3, but must be 1 to"),
        ({"n_classes": 10**12}, "n_classes is 1000000000000, but must be 1 to"),
        ({"n_classes": 3, "class_names": ["a"]}, "1 class_names for 3 classes"),
        ({"n_classes": 2, "class_names": ["a"] * 2}, "names are repeated: a, a"),
        ({"columns": {"tuple": [COLUMN] * 2}}, "names are repeated: a, a"),
    ],
)
def test_forged_sizes_and_names_are_refused(entries, edit, fields, message):
    problem = json.loads(entries[MODEL])["problem"]
    problem["fields"] |= fields
    with pytest.raises(ConfigError, match=message):
        load_model(edit({}, problem=problem))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            b"plugins: []",
            b"plugins: [this_is_evil]",
            "imports this_is_evil, code outside the runner",
        ),
        (b"name: igp", b"name: igpp", "igpp"),
        (b"seed: 0", b"seed: -1", "seed"),
    ],
)
def test_foreign_config_is_validated(entries, edit, old, new, message):
    config = entries["config.yaml"]
    assert old in config
    with pytest.raises(ConfigError, match=message):
        load_model(edit({"config.yaml": config.replace(old, new, 1)}))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("part", ["state.", "columns.scale", "problem.y_std"])
def test_non_finite_weights_are_refused(entries, edit, part, value):
    weights = st.load(entries[WEIGHTS])
    name = next(n for n in weights if part in n and weights[n].is_floating_point())
    weights[name].view(-1)[-1] = value
    content = st.save(weights)
    file = edit({WEIGHTS: content}, weights_sha256=hashlib.sha256(content).hexdigest())
    with pytest.raises(ConfigError, match=f"{name} in {WEIGHTS} has numbers that are not finite"):
        load_model(file)
