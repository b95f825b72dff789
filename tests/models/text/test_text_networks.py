"""Networks that read tokens: literal cells and attention, padding without effect, and dropout from
our own stream."""

import math

import pytest
import torch
from support.runs.configured import F64, build_model, double, generator
from support.small.small_nets import SMALL_LSTM, SMALL_TRANSFORMER, texts
from support.small.small_problems import classes, component, train
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.models.text.text_transformer import positions
from runner.execution.rng import Streams

BOTH = pytest.mark.parametrize(
    "model", [SMALL_LSTM, SMALL_TRANSFORMER], ids=["lstm", "transformer"]
)


def test_lstm_equals_its_cells_row_by_row():
    problem = texts()
    network = SMALL_LSTM.build(problem, Streams(0))
    logits = network(problem.test.x)[:, 0]
    for row, expected in zip(problem.test.x, logits, strict=True):
        h = network.words[row[row != 0].long()]
        for cell in network.cells:
            h, _ = cell(h)
        assert_close(network.head[0] @ h[-1] + network.head[1], expected)


def by_torch(layer):
    """The same layer of ``torch.nn``, with two heads."""
    other = nn.TransformerEncoderLayer(4, 2, len(layer.up[0]), dropout=0.0).double().eval()
    attention = other.self_attn
    first, second = zip(layer.gains, layer.shifts, strict=True)
    parts = {
        (attention.in_proj_weight, attention.in_proj_bias): layer.into,
        tuple(attention.out_proj.parameters()): layer.out,
        tuple(other.linear1.parameters()): layer.up,
        tuple(other.linear2.parameters()): layer.down,
        tuple(other.norm1.parameters()): first,
        tuple(other.norm2.parameters()): second,
    }
    for theirs, ours in parts.items():
        for a, b in zip(theirs, ours, strict=True):
            a.data = b.data
    return other


def test_transformer_equals_the_layers_of_torch():
    problem = texts()
    network = SMALL_TRANSFORMER.build(problem, Streams(0))
    logits = network(problem.test.x)[:, 0]
    for row, expected in zip(problem.test.x[:4], logits, strict=False):
        n = int((row != 0).sum())
        h = 2 * network.words[row[:n].long()] + positions(n, 4, row)  # √4
        for layer in network.layers:
            h = by_torch(layer)(h)
        assert_close(network.head[0] @ h.mean(0) + network.head[1], expected)


def test_positions_equal_those_of_the_paper():
    p = positions(5, 6, torch.zeros(1, dtype=F64))
    for t in range(5):
        for j in range(3):
            angle = t / 10_000 ** (2 * j / 6)
            assert_close(p[t, 2 * j : 2 * j + 2].tolist(), [math.sin(angle), math.cos(angle)])


@BOTH
def test_padding_has_no_say(model):
    problem = texts(n=6)
    network = model.build(problem, Streams(0))
    x = problem.test.x
    longer = F.pad(x, (0, 5))
    assert_close(network(longer), network(x))
    alone = torch.cat([network(row[None]) for row in x])
    assert_close(alone, network(x))
    ends = x.clone()
    ends[:, 0] = 2
    assert not torch.allclose(network(ends), network(x))
    assert torch.isfinite(network(torch.zeros_like(x))).all()  # rows without words


@BOTH
def test_word_order_matters_and_dropout_uses_the_given_stream(model):
    problem = texts(n=6)
    network = model.build(problem, Streams(0))
    x = double([[2.0, 3, 4], [4.0, 3, 2]])
    f = network(x)
    assert not torch.allclose(f[0], f[1])
    state = torch.random.get_rng_state()
    first, same, other = (network(x, generator(s)) for s in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert network(x, torch.Generator(), passes=3).shape == (3, 2, 1, 2)
    assert torch.equal(state, torch.random.get_rng_state())


@BOTH
def test_network_learns_the_words_of_each_class(model):
    problem = texts(n=60, batch_size=20)
    method = component("inference", "map", lr=0.03)
    state, rng = train(method, model, problem, 100)
    assert problem.score(method.posterior(state), rng)["accuracy"] > 0.8


def test_networks_have_the_printed_sizes():
    problem = texts(words=5002)
    lstm = build_model("lstm", problem)
    assert lstm.words.shape == (5002, 100)
    assert [(cell.input_size, cell.hidden_size) for cell in lstm.cells] == [(100, 256), (256, 256)]
    transformer = build_model("text_transformer", problem)
    assert transformer.words.shape == (5002, 16)
    assert [tuple(layer.up[0].shape) for layer in transformer.layers] == [(10, 16), (10, 16)]


def test_invalid_inputs_are_refused_in_one_line():
    for model in (SMALL_LSTM, SMALL_TRANSFORMER):
        with pytest.raises(
            ConfigMismatchError,
            match=r"small .* tokens; choose dataset=reviews or dataset=imdb",
        ):
            model.build(classes(n_classes=2), Streams(0))
    with pytest.raises(ValueError, match=r"heads: 3 heads .* 16 .*; use a divisor"):
        component("model", "text_transformer", heads=3)
