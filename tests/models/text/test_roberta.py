"""RoBERTa from a folder: missing files are named, padding has no effect, and dropout uses the run's
stream."""

from pathlib import Path

import pytest
import torch
from support.runs.configured import build_model, generator
from support.small.small_nets import texts
from support.small.small_problems import component, tensors, train, train_and_resume
from torch.nn import functional as F
from torch.testing import assert_close

from components.errors import ConfigMismatchError, DataUnavailableError
from runner.execution.rng import Streams

# one layer of random weights
FOLDER = str(Path(__file__).parent.parent.parent / "fixtures" / "roberta")


def test_folder_without_weights_is_named(tmp_path):
    with pytest.raises(
        DataUnavailableError,
        match=r"model\.folder: .* config\.json .* model\.safetensors; copy RoBERTa's",
    ):
        build_model("roberta", texts(), folder=str(tmp_path))


def test_local_weights_are_loaded(tmp_path):
    pytest.importorskip("transformers", reason="transformers is not installed")
    problem = texts(n=6)
    model = component("model", "roberta", folder=FOLDER, dropout=0.3)
    state = torch.random.get_rng_state()
    network = model.build(problem, Streams(0))
    x = problem.test.x
    assert_close(network(F.pad(x, (0, 5))), network(x))
    assert_close(torch.cat([network(row[None]) for row in x]), network(x))
    first, same, other = (network(x, generator(s)) for s in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.equal(network(x), network(x))
    swa = component("inference", "swa", burn_in=3, every=2)
    short = texts(dtype=torch.float32)
    whole = train(swa, model, short, 8)[0]
    parts = train_and_resume(swa, model, short, 8, 5, tmp_path)[0]
    assert_close(tensors(whole), tensors(parts), rtol=0, atol=0)


def test_wrong_tokens_and_long_texts_are_refused():
    pytest.importorskip("transformers", reason="transformers is not installed")
    model = component("model", "roberta", folder=FOLDER)
    with pytest.raises(
        ConfigMismatchError,
        match=r" 49 distinct tokens, .* 30; set dataset\.tokenizer",
    ):
        model.build(texts(words=50), Streams(0))
    with pytest.raises(
        ConfigMismatchError,
        match=r"dataset\.length: .* 39 tokens, .* model=roberta supports 38; lower it",
    ):
        model.build(texts(length=39), Streams(0))
