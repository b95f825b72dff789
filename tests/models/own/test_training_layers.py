"""Layers that act differently in training learn as in PyTorch, or are named in a refusal."""

import pytest
import torch
from own_frozen import Middle
from support.runs.configured import F64, component, generator
from support.small.small_problems import classes, tensors, train, train_and_resume
from torch import nn
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from runner.execution.rng import Streams

LEARNING = ["batch_norm", "instance_norm", "spectral_norm", "old_spectral_norm"]


def model(middle, still=False, **keys):
    given = {"middle": middle, "still": still}
    return component("model", "module", class_path="own_frozen:Middle", arguments=given, **keys)


@pytest.mark.parametrize("still", [False, True])
@pytest.mark.parametrize("middle", [*LEARNING, "weight_norm", "old_weight_norm"])
def test_layers_learn_as_in_a_plain_loop(tmp_path, middle, still):
    problem = classes()
    torch.manual_seed(3)
    net = Middle(middle=middle, still=still).double()
    torch.save(net.state_dict(), tmp_path / "net.pt")
    descent = component("inference", "map", optimizer="sgd", momentum=0.0, lr=0.5)
    ours = model(middle, still, path=str(tmp_path / "net.pt"), prior_std=1e6)
    network = train(descent, ours, problem, 20)[0].network.train(False)
    step = torch.optim.SGD(net.train().parameters(), 0.5)
    for _ in range(20):
        step.zero_grad()
        nn.functional.cross_entropy(net(problem.train.x), problem.train.y[:, 0]).backward()
        step.step()
    x = problem.test.x
    assert_close(network(x)[:, 0], net.eval()(x))
    assert len(network.statistics()) == (2 if middle in LEARNING and not still else 0)
    buffers = dict(net.named_buffers())
    for name, value in network.net.named_buffers():
        assert torch.allclose(value, buffers[name], rtol=1e-6, atol=1e-8), name


@pytest.mark.parametrize("middle", ["spectral_norm", "old_spectral_norm"])
def test_spectral_norms_use_the_given_weights(middle):
    """W/σ(W) is the same for W and 3 W, also far from the weights of the buffers."""
    problem = classes()
    network = model(middle).build(problem, Streams(0))
    theta = torch.randn(2, network.dim, dtype=F64)
    parts = dict(zip(network.shapes, theta[0].split(network.pieces), strict=True))
    W = next(
        part for name, part in parts.items() if name.startswith("middle") and part.numel() == 36
    )
    theta[1] = torch.cat([3 * part if part is W else part for part in parts.values()])
    originals = [value.clone() for value in network.statistics()]
    first, other = network.outputs(theta, problem.test.x)[:, :, 0]
    assert all(map(torch.equal, originals, network.statistics()))
    h = problem.test.x @ parts["first.weight"].view(6, 4).T + parts["first.bias"]
    h = h @ (W / torch.linalg.matrix_norm(W.view(6, 6), 2)).view(6, 6).T + parts["middle.bias"]
    exact = torch.tanh(h) @ parts["head.weight"].view(3, 6).T + parts["head.bias"]
    assert_close(first, other)
    assert torch.allclose(first, exact, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["swag", "iterate_ensemble"])
@pytest.mark.parametrize("middle", ["instance_norm", "old_spectral_norm"])
def test_runs_with_running_statistics_resume(tmp_path, middle, name):
    problem = classes(batch_size=20)
    inference = component("inference", name, every=1, burn_in=1)
    whole = train(inference, model(middle), problem, 9)[0]
    again = train_and_resume(inference, model(middle), problem, 9, 4, tmp_path)[0]
    assert all(map(torch.equal, tensors(whole), tensors(again)))


@pytest.mark.parametrize("middle", ["noise", "rrelu"])
def test_stochastic_layers_act_like_dropout(middle):
    problem = classes()
    network = model(middle).build(problem, Streams(0)).train(False)
    x = problem.test.x
    a, b, c = (network(x, generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert torch.equal(network(x), network(x))
    train(component("inference", "mc_dropout"), model(middle), problem, 2)


@pytest.mark.parametrize(("middle", "layer"), [("drift", "Drift"), ("two_outputs", "TwoOutputs")])
def test_untrainable_layers_are_named(middle, layer):
    message = rf"behaves differently in training due to middle \({layer}\), which is not supported"
    for name in ("map", "sgld"):
        with pytest.raises(ConfigMismatchError, match=message):
            train(component("inference", name), model(middle), classes(), 1)
    train(component("inference", "fixed"), model(middle), classes(), 1)


def test_scripted_modules_are_refused_in_one_line():
    with pytest.raises(
        ConfigMismatchError,
        match=r"middle .* TorchScript .*; build it from its class[^\n]*$",
    ):
        model("scripted").build(classes(), Streams(0))
