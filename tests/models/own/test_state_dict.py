"""Weights from a file: the same function as the saved network, and starting points of training and
chains."""

import re

import pytest
import torch
from support.runs.configured import load
from support.small.saved_weights import (
    SMALL,
    build_from_file,
    check_function,
    mlp,
    rename_layers,
    save_weights,
)
from support.small.small_problems import classes
from torch import nn
from torch.autograd import grad
from torch.testing import assert_close

from components.errors import ConfigMismatchError, DamagedFileError, QuestionableConfigWarning
from components.models.own.ordinary_layers import _natural
from components.models.own.weights_file import expand_binary_head


@pytest.mark.parametrize("name", ["w.safetensors", "w.pt"])
def test_mlp_from_file_equals_the_plain_one(tmp_path, name):
    net = mlp(4, 7, 7, 7, 3)
    check_function(net, save_weights(tmp_path, net, name), {"name": "mlp", "widths": [7, 7, 7]})


def test_ten_equal_layers_are_ordered_by_number(tmp_path):
    """In alphabetical order, layer 10 would precede layer 2."""
    net = mlp(4, *[4] * 11, 3)
    check_function(net, save_weights(tmp_path, net), {"name": "mlp", "widths": [4] * 11})
    assert sorted(["a10.b", "a9.b"], key=_natural) == ["a9.b", "a10.b"]


@pytest.mark.parametrize("pixels", ["raw", "standardised"])
def test_cnn_from_file_equals_the_plain_one(tmp_path, pixels):
    torch.manual_seed(0)
    front = [nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    net = nn.Sequential(*front, nn.Linear(48, 5), nn.ReLU(), nn.Linear(5, 10)).double()
    problem, _ = load("digits", n_train=50, n_test=20)
    given = {"name": "cnn", "channels": [3], "widths": [5]}
    network = build_from_file(problem, save_weights(tmp_path, net), given, pixels=pixels)
    x = problem.test.x
    mean = problem.train.x.mean()
    sd = problem.train.x.std(correction=0)
    scaled = x if pixels == "raw" else (x - mean) / sd
    assert torch.allclose(
        network(x)[:, 0], net(scaled.unflatten(1, (1, 8, 8))), rtol=1e-12, atol=1e-12
    )


def test_layers_with_other_names_are_matched_by_shape(tmp_path):
    net = mlp(4, 7, 3)
    check_function(net, save_weights(tmp_path, rename_layers(net, {"zebra": 0, "ape": 2})))


def test_equal_shapes_with_other_names_require_an_order(tmp_path):
    net = mlp(4, 4, 4, 3)
    names = {"first": 0, "second": 2, "head": 4}
    path = save_weights(tmp_path, rename_layers(net, names))
    given = {"name": "mlp", "widths": [4, 4]}
    with pytest.raises(ConfigMismatchError, match=r"first and second .*model\.layers=\[…\]"):
        build_from_file(classes(), path, given)
    check_function(net, path, given, layers=list(names))


@pytest.mark.parametrize(
    ("change", "keys", "message"),
    [
        (lambda t: t.pop("0.bias"), {}, "lacks 0.bias"),
        (lambda t: t.update({"2.bias": torch.zeros(5)}), {}, "2.bias is [5] instead of [3]"),
        (
            lambda t: t.update({"5.running_mean": torch.zeros(5)}),
            {},
            "has 5.running_mean, which the network lacks",
        ),
        (
            lambda t: t.update({f"n{i}": torch.zeros(5) for i in range(5)}),
            {},
            "has n0, n1, n2 and 2 more",
        ),
        (lambda t: t["0.weight"].mul_(torch.nan), {}, "0.weight have values that are not finite"),
        (
            lambda t: None,
            {"widths": [8]},
            "0.weight is [7, 4] instead of [8, 4], 0.bias is [7] instead of [8], 2.weight is",
        ),
        (
            lambda t: None,
            {"widths": [7, 7]},
            "2 layers of weights ([7, 4] → [3, 7]), but the network has 3",
        ),
        (lambda t: None, {"prefix": "net."}, "model.prefix=net.: does not match any name in"),
    ],
)
def test_mismatched_tensors_are_named(tmp_path, change, keys, message):
    tensors = dict(mlp(4, 7, 3).state_dict())
    change(tensors)
    given = SMALL | {k: v for k, v in keys.items() if k == "widths"}
    with pytest.raises(ConfigMismatchError, match=re.escape(message)) as error:
        build_from_file(
            classes(), save_weights(tmp_path, tensors), given, prefix=keys.get("prefix", "")
        )
    assert re.fullmatch(r".*(; (set|save|write)|its names are).*", str(error.value)), "what to do"


def test_code_in_a_file_is_not_executed(tmp_path):
    torch.save(mlp(4, 7, 3), tmp_path / "whole.pt")
    (tmp_path / "text.safetensors").write_text("weights")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    for name, message in (
        ("whole.pt", "not a file of tensors"),
        ("text.safetensors", "not a safetensors file"),
        ("table.csv", "not a file of tensors"),
    ):
        with pytest.raises(DamagedFileError, match=f"^.*{message}.*write it with.*$"):
            build_from_file(classes(), str(tmp_path / name))


def test_nested_and_prefixed_weights_are_accepted(tmp_path):
    net = mlp(4, 7, 3)
    kept = {"epoch": 3, "state_dict": rename_layers(net, {"model.0": 0, "model.2": 2})}
    check_function(net, save_weights(tmp_path, kept, "w.ckpt"), prefix="model.")


OPTIMIZER = {
    "state": {0: {"step": torch.zeros(()), "exp_avg": torch.zeros(7, 4)}},
    "param_groups": [{"lr": 0.1}],
}


@pytest.mark.parametrize(
    "key", ["state_dict", "model_state_dict", "net", "model", "my_weights", "checkpoint.model"]
)
@pytest.mark.parametrize("wrapped", ["", "module.", "_orig_mod.", "module._orig_mod."])
def test_weights_among_other_entries_are_accepted(tmp_path, key, wrapped):
    net = mlp(4, 7, 3)
    kept = rename_layers(net, {f"{wrapped}0": 0, f"{wrapped}2": 2})
    for name in reversed(key.split(".")):
        kept = {name: kept}
    kept |= {"optimizer_state_dict": OPTIMIZER, "epoch": 3, "loss": 0.1, "args": {"lr": 0.1}}
    check_function(net, save_weights(tmp_path, kept, "w.pt"))


def test_one_of_several_sets_of_weights_is_chosen_by_key(tmp_path):
    nets = {name: mlp(4, 7, 3, seed=seed) for seed, name in enumerate(("student", "teacher"))}
    student, teacher = (net.state_dict() for net in nets.values())
    path = save_weights(tmp_path, {"student": student, "teacher": teacher}, "w.pt")
    message = re.escape(
        "several sets of weights, student, teacher; choose one, model.prefix=student. or model.prefix=teacher."
    )
    with pytest.raises(ConfigMismatchError, match=message):
        build_from_file(classes(), path)
    for name, net in nets.items():
        check_function(net, path, prefix=f"{name}.")
    path = save_weights(tmp_path, {"ema": student, "net": teacher}, "ema.pt")
    message = "contains ema in addition to net, which is used; set model.prefix=ema. to use ema"
    with pytest.warns(QuestionableConfigWarning, match=message):
        check_function(nets["teacher"], path)


@pytest.mark.parametrize("tasks", [1, 2])
def test_log_odds_head_equals_one_of_two_classes(tmp_path, tasks):
    """softmax(0, f)_1 = σ(f), task by task, and an attack has the same input gradient."""
    net = mlp(4, 7, 5, tasks)
    problem = classes(n_classes=2, n_tasks=tasks)
    network = build_from_file(problem, save_weights(tmp_path, net), SMALL | {"widths": [7, 5]})
    x = problem.test.x.clone().requires_grad_()
    f = network(x)
    odds = net(x)
    assert f.shape == (len(x), tasks, 2)
    assert torch.equal(f[..., 0], torch.zeros_like(f[..., 0]))
    assert torch.allclose(f.softmax(-1)[..., 1], odds.sigmoid(), rtol=1e-13, atol=1e-13)
    ours = nn.functional.cross_entropy(f.flatten(0, 1), problem.test.y.flatten())
    theirs = nn.functional.binary_cross_entropy_with_logits(odds, problem.test.y.to(odds))
    (a,) = grad(ours, x)
    (b,) = grad(theirs, x)
    assert_close(a, b)
    assert a.abs().sum() > 0


def test_log_odds_require_binary_labels_and_the_last_layer(tmp_path):
    path = save_weights(tmp_path, mlp(4, 7, 5, 1))
    with pytest.raises(
        ConfigMismatchError, match=r"4\.weight .*\[1, 5\] .*\[3, 5\].*; set model\.network"
    ):
        build_from_file(classes(), path, SMALL | {"widths": [7, 5]})
    with pytest.raises(
        ConfigMismatchError, match=r"0\.weight .*\[7, 4\] .*\[14, 4\].*; set model\.network"
    ):
        build_from_file(classes(n_classes=2), path, SMALL | {"widths": [14, 5]})
    head = {"head.weight": torch.ones(1, 3), "head.bias": torch.ones(1)}
    asked = {"head.weight": (2, 3), "head.bias": (2,), "body.weight": (3, 3)}
    expanded = expand_binary_head(asked, head)
    assert expanded["head.weight"].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert expanded["head.bias"].tolist() == [0, 1]
    two = {**head, "body.weight": torch.ones(1, 3)}
    # the head is ambiguous
    assert expand_binary_head({**asked, "body.weight": (2, 3)}, two) == two
