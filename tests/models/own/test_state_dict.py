"""Weights from a file: the same function as the network that they are of, and where training and
chains begin."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from support.runs.configured import component, load
from support.small.small_problems import classes, real
from torch import nn
from torch.autograd import grad
from torch.testing import assert_close

from components.errors import ConfigMismatchError, DamagedFileError, QuestionableConfigWarning
from components.models.own.ordinary_layers import _natural
from components.models.own.weights_file import expand_binary_head
from runner.execution.rng import Streams


def mlp(*sizes: int, seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for inside, out in itertools.pairwise(sizes):
        layers += [nn.Linear(inside, out), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


def saved(folder: Path, net: nn.Module | dict, name: str = "w.safetensors") -> str:
    tensors = net.state_dict() if isinstance(net, nn.Module) else net
    save_file(tensors, folder / name) if name.endswith(".safetensors") else torch.save(
        tensors, folder / name
    )
    return str(folder / name)


def model(path: str, network: dict | str = "mlp", **keys):
    given = {"name": network} if isinstance(network, str) else network
    name = given.pop("name")
    return component(
        "model", "state_dict", path=path, network=component("model", name, **given), **keys
    )


def built(problem, *args, **keys):
    return model(*args, **keys).build(problem, Streams(0))


@pytest.mark.parametrize("name", ["w.safetensors", "w.pt"])
def test_an_mlp_is_the_plain_one(tmp_path, name):
    net, problem = mlp(4, 7, 7, 7, 3), classes()
    network = built(problem, saved(tmp_path, net, name), {"name": "mlp", "widths": [7, 7, 7]})
    x = problem.test.x
    assert torch.allclose(network(x)[:, 0], net(x), rtol=1e-13, atol=1e-13)
    assert torch.equal(network(x)[:, 0].argmax(1), net(x).argmax(1))


def test_ten_equal_layers_are_in_the_order_of_their_numbers(tmp_path):
    """As texts, layer 10 would come before layer 2."""
    net, problem = mlp(4, *[4] * 11, 3), classes()
    network = built(problem, saved(tmp_path, net), {"name": "mlp", "widths": [4] * 11})
    assert_close(network(problem.test.x)[:, 0], net(problem.test.x))
    assert sorted(["a10.b", "a9.b"], key=_natural) == ["a9.b", "a10.b"]


@pytest.mark.parametrize("pixels", ["raw", "standardised"])
def test_a_cnn_is_the_plain_one(tmp_path, pixels):
    torch.manual_seed(0)
    front = [nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    net = nn.Sequential(*front, nn.Linear(48, 5), nn.ReLU(), nn.Linear(5, 10)).double()
    problem, _ = load("digits", n_train=50, n_test=20)
    given = {"name": "cnn", "channels": [3], "widths": [5]}
    network = built(problem, saved(tmp_path, net), given, pixels=pixels)
    x = problem.test.x
    mean, sd = problem.train.x.mean(), problem.train.x.std(correction=0)
    seen = x if pixels == "raw" else (x - mean) / sd
    assert torch.allclose(
        network(x)[:, 0], net(seen.unflatten(1, (1, 8, 8))), rtol=1e-12, atol=1e-12
    )


def test_layers_of_other_names_are_told_apart_by_their_shapes(tmp_path):
    net, problem = mlp(4, 7, 3), classes()
    tensors = {f"{new}.{kind}": net.state_dict()[f"{old}.{kind}"] for new, old in (("zebra", 0), ("ape", 2))
               for kind in ("weight", "bias")}  # fmt: skip
    network = built(problem, saved(tmp_path, tensors), {"name": "mlp", "widths": [7]})
    assert_close(network(problem.test.x)[:, 0], net(problem.test.x))


def test_equal_shapes_of_other_names_have_to_be_put_in_order(tmp_path):
    net, problem = mlp(4, 4, 4, 3), classes()
    names = {"first": 0, "second": 2, "head": 4}
    path = saved(tmp_path, {f"{new}.{kind}": net.state_dict()[f"{old}.{kind}"] for new, old in names.items()
                            for kind in ("weight", "bias")})  # fmt: skip
    given = {"name": "mlp", "widths": [4, 4]}
    with pytest.raises(
        ConfigMismatchError, match=r"first and second have one shape.*model\.layers=\[…\]"
    ):
        built(problem, path, dict(given))
    network = built(problem, path, dict(given), layers=list(names))
    assert_close(network(problem.test.x)[:, 0], net(problem.test.x))


@pytest.mark.parametrize(
    ("change", "keys", "said"),
    [
        (lambda t: t.pop("0.bias"), {}, "lacks 0.bias"),
        (lambda t: t.update({"2.bias": torch.zeros(5)}), {}, "2.bias is [5] and not [3]"),
        (lambda t: t.update({"5.running_mean": torch.zeros(5)}), {}, "has 5.running_mean, which the network has not"),
        (lambda t: t.update({f"n{i}": torch.zeros(5) for i in range(5)}), {}, "has n0, n1, n2 and 2 more"),
        (lambda t: t["0.weight"].mul_(torch.nan), {}, "0.weight hold numbers that are not finite"),
        (lambda t: None, {"widths": [8]}, "0.weight is [7, 4] and not [8, 4], 0.bias is [7] and not [8], 2.weight is"),
        (lambda t: None, {"widths": [7, 7]}, "2 layers of weights ([7, 4] → [3, 7]), the network has 3"),
        (lambda t: None, {"prefix": "net."}, "model.prefix=net.: no name in"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(tmp_path, change, keys, said):
    tensors = {name: value.clone() for name, value in mlp(4, 7, 3).state_dict().items()}
    change(tensors)
    path = saved(tmp_path, tensors)
    prefix = keys.pop("prefix", "")
    with pytest.raises(ConfigMismatchError) as error:
        built(classes(), path, {"name": "mlp", "widths": [7]} | keys, prefix=prefix)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert re.search(r"; (set|save|write)|there are", str(error.value)), "what to do"


def test_no_code_of_a_file_is_run(tmp_path):
    torch.save(mlp(4, 7, 3), tmp_path / "whole.pt")
    (tmp_path / "text.safetensors").write_text("weights")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    for name, said in (
        ("whole.pt", "no file of tensors alone"),
        ("text.safetensors", "no safetensors file"),
        ("table.csv", "no file of tensors alone"),
    ):
        with pytest.raises(DamagedFileError, match=said) as error:
            built(classes(), str(tmp_path / name), {"name": "mlp", "widths": [7]})
        assert "write it with" in str(error.value)
        assert "\n" not in str(error.value)


def test_the_weights_of_a_training_loop_lie_deeper_and_have_a_prefix(tmp_path):
    net, problem = mlp(4, 7, 3), classes()
    kept = {
        "epoch": 3,
        "state_dict": {f"model.{name}": value for name, value in net.state_dict().items()},
    }
    network = built(
        problem, saved(tmp_path, kept, "w.ckpt"), {"name": "mlp", "widths": [7]}, prefix="model."
    )
    assert_close(network(problem.test.x)[:, 0], net(problem.test.x))


OPTIMIZER = {
    "state": {0: {"step": torch.zeros(()), "exp_avg": torch.zeros(7, 4)}},
    "param_groups": [{"lr": 0.1}],
}


@pytest.mark.parametrize(
    "key", ["state_dict", "model_state_dict", "net", "model", "my_weights", "checkpoint.model"]
)
@pytest.mark.parametrize("wrapped", ["", "module.", "_orig_mod.", "module._orig_mod."])
def test_weights_beside_other_things_are_taken(tmp_path, key, wrapped):
    net, problem = mlp(4, 7, 3), classes()
    kept = {f"{wrapped}{name}": value for name, value in net.state_dict().items()}
    for name in reversed(key.split(".")):
        kept = {name: kept}
    kept |= {"optimizer_state_dict": OPTIMIZER, "epoch": 3, "loss": 0.1, "args": {"lr": 0.1}}
    network = built(problem, saved(tmp_path, kept, "w.pt"), {"name": "mlp", "widths": [7]})
    assert_close(network(problem.test.x)[:, 0], net(problem.test.x))


def test_of_several_sets_of_weights_one_is_chosen(tmp_path):
    nets, problem = (
        {name: mlp(4, 7, 3, seed=seed) for seed, name in enumerate(("student", "teacher"))},
        classes(),
    )
    path = saved(tmp_path, {name: net.state_dict() for name, net in nets.items()}, "w.pt")
    said = re.escape(
        "several sets of weights, student, teacher; choose one, model.prefix=student. or model.prefix=teacher."
    )
    with pytest.raises(ConfigMismatchError, match=said):
        built(problem, path, {"name": "mlp", "widths": [7]})
    for name, net in nets.items():
        network = built(problem, path, {"name": "mlp", "widths": [7]}, prefix=f"{name}.")
        assert_close(network(problem.test.x)[:, 0], net(problem.test.x))
    path = saved(
        tmp_path,
        {"ema": nets["student"].state_dict(), "net": nets["teacher"].state_dict()},
        "ema.pt",
    )
    with pytest.warns(
        QuestionableConfigWarning,
        match="holds ema beside net, which is taken; model.prefix=ema. would choose ema",
    ):
        network = built(problem, path, {"name": "mlp", "widths": [7]})
    assert_close(network(problem.test.x)[:, 0], nets["teacher"](problem.test.x))


@pytest.mark.parametrize(
    ("network", "kind"),
    [("mlp", classes), ("mann2", real), ("mlp", real)],
)
def test_a_network_from_here_comes_back(tmp_path, network, kind):
    """By its own names, the noise of real labels and what pixels are standardised by among them."""
    problem = kind()
    was = component("model", network, widths=[5]).build(problem, Streams(3))
    with torch.no_grad():
        was.log_noise.fill_(0.3)
    here = built(problem, saved(tmp_path, was), {"name": network, "widths": [5]})
    assert torch.equal(here(problem.test.x), was(problem.test.x))
    assert torch.equal(here.log_noise, was.log_noise)


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_chains_and_ensembles_begin_about_the_file(tmp_path, spread):
    problem = classes()
    start = model(saved(tmp_path, mlp(4, 7, 3)), {"name": "mlp", "widths": [7]}, spread=spread)
    theta = start.build(problem, Streams(0)).theta.detach()
    for name, keys in (("sgld", {"chains": 400}), ("deep_ensemble", {"members": 400})):
        inference = component("inference", name, **keys)
        state = inference.init(start.build(problem, Streams(0)), problem, Streams(1))
        begun = state.theta if name == "sgld" else state.weights["theta"].detach()
        assert begun.shape == (400, len(theta))
        if spread == 0:
            assert torch.equal(begun, theta.expand_as(begun))
        else:
            z = (begun - theta) / spread  # 400 · 59 numbers
            assert abs(float(z.mean())) < 4 * z.numel() ** -0.5
            assert float(z.std()) == pytest.approx(1, abs=4 * (2 * z.numel()) ** -0.5)


@pytest.mark.parametrize(
    "name", ["map", "mean_field_vi", "swag", "bayes_by_backprop", "adversarial_training"]
)
def test_methods_of_networks_begin_at_the_file(tmp_path, name):
    net, problem = mlp(4, 7, 3), classes()
    start = model(saved(tmp_path, net), {"name": "mlp", "widths": [7]})
    keys = {"initial_std": 1e-9} if name in ("mean_field_vi", "bayes_by_backprop") else {}
    if name == "adversarial_training":
        keys["training_attacker"] = component("attacker", "fgsm")
    inference = component("inference", name, **keys)
    rng = Streams(0)
    state = inference.init(start.build(problem, rng), problem, rng)
    found = inference.posterior(state).predict(problem.test.x, rng.noise).probs[:, 0]
    assert torch.allclose(found, net(problem.test.x).softmax(1), atol=1e-5)


def test_a_network_of_another_kind_is_filled_by_its_own_names(tmp_path):
    problem, _ = load("digits", n_train=30, n_test=10)
    was = component("model", "vgg", depth=7, width=2).build(problem, Streams(3))
    with torch.no_grad():
        was.running_mean_0.fill_(0.2)
    path = saved(tmp_path, was)
    here = built(problem, path, {"name": "vgg", "depth": 7, "width": 2})
    assert torch.equal(here.eval()(problem.test.x), was.eval()(problem.test.x))
    with pytest.raises(ConfigMismatchError, match=re.escape("running_mean_0 is [2] and not [3]")):
        built(problem, path, {"name": "vgg", "depth": 7, "width": 3})


@pytest.mark.parametrize("tasks", [1, 2])
def test_a_head_of_log_odds_is_that_of_two_classes(tmp_path, tasks):
    """softmax(0, f)_1 = σ(f), task by task, and the gradient in the inputs that an attack follows
    is the same."""
    net, problem = mlp(4, 7, 5, tasks), classes(n_classes=2, n_tasks=tasks)
    network = built(problem, saved(tmp_path, net), {"name": "mlp", "widths": [7, 5]})
    x = problem.test.x.clone().requires_grad_()
    f, odds = network(x), net(x)
    assert f.shape == (len(x), tasks, 2)
    assert torch.equal(f[..., 0], torch.zeros_like(f[..., 0]))
    assert torch.allclose(f.softmax(-1)[..., 1], odds.sigmoid(), rtol=1e-13, atol=1e-13)
    ours = nn.functional.cross_entropy(f.flatten(0, 1), problem.test.y.flatten())
    theirs = nn.functional.binary_cross_entropy_with_logits(odds, problem.test.y.to(odds))
    (a,), (b,) = grad(ours, x), grad(theirs, x)
    assert_close(a, b)
    assert a.abs().sum() > 0


def test_log_odds_are_of_binary_labels_and_of_the_last_layer_alone(tmp_path):
    with pytest.raises(ConfigMismatchError, match=r"4\.weight is \[1, 5\] and not \[3, 5\]"):
        built(classes(), saved(tmp_path, mlp(4, 7, 5, 1)), {"name": "mlp", "widths": [7, 5]})
    with pytest.raises(ConfigMismatchError, match=r"0\.weight is \[7, 4\] and not \[14, 4\]"):
        built(
            classes(n_classes=2),
            saved(tmp_path, mlp(4, 7, 5, 1)),
            {"name": "mlp", "widths": [14, 5]},
        )
    head = {"head.weight": torch.ones(1, 3), "head.bias": torch.ones(1)}
    asked = {"head.weight": (2, 3), "head.bias": (2,), "body.weight": (3, 3)}
    found = expand_binary_head(asked, head)
    assert found["head.weight"].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert found["head.bias"].tolist() == [0, 1]
    two = {**head, "body.weight": torch.ones(1, 3)}
    # which of them is the head is not known
    assert expand_binary_head({**asked, "body.weight": (2, 3)}, two) == two
