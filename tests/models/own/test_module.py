"""A user's module: the same function and gradient as without the runner, with external θ and
randomness from a stream of the run."""

import pytest
import torch
from own_things import Net, Recurrent
from safetensors.torch import save_file
from support.runs.configured import F64, component, generator, load
from support.small.small_problems import classes, real
from torch import nn
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from runner.execution.rng import Streams

PLACE = "own_things:Net"


def model(place=PLACE, **keys):
    return component("model", "module", class_path=place, **keys)


def sizes(problem):
    return {"inputs": problem.n_inputs, "outputs": problem.n_tasks * problem.n_classes}


def with_file(folder, problem, **keys):
    """A network with weights from a file, and the plain module with these weights."""
    torch.manual_seed(5)
    net = Net(**sizes(problem)).double()
    net(torch.randn(50, problem.n_inputs, dtype=F64))  # statistics of its normalisation
    weights = {name: value for name, value in net.state_dict().items() if name != "third.weight"}
    path = folder / "net.pt"
    torch.save(net.state_dict(), path)
    assert len(weights) < len(net.state_dict())
    return model(path=str(path), arguments=sizes(problem), **keys).build(problem, Streams(0)), net


@pytest.mark.parametrize("kind", [classes, real])
def test_network_equals_the_module(tmp_path, kind):
    problem = kind()
    network, net = with_file(tmp_path, problem)
    x = problem.test.x
    f = network.train(False)(x).detach()
    assert torch.equal(f.flatten(1), net.eval()(x))
    K = torch.stack([network.theta.detach(), 0.5 * network.theta.detach()])
    several = network.outputs(K, x)
    assert torch.equal(several[0], f)
    apart = network.outputs(K, torch.stack([x, x.flip(0)]))
    assert torch.equal(apart[1].flip(0), several[1])


def test_shared_parameters_occur_once(tmp_path):
    network, net = with_file(tmp_path, classes())
    assert len(network.theta) == sum(p.numel() for p in net.parameters())
    network, _ = with_file(tmp_path, real())
    assert network.dim == len(network.theta) + 2  # and a noise for each task


def test_gradient_equals_that_of_the_module(tmp_path):
    problem = classes()
    network, net = with_file(tmp_path, problem)
    batch = problem.train
    network.train(False)
    network.log_prob(network(batch.x), batch).sum().backward()
    (-nn.functional.cross_entropy(net.eval()(batch.x), batch.y[:, 0], reduction="sum")).backward()
    grad = torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None])
    assert torch.allclose(network.theta.grad, grad, rtol=1e-9, atol=1e-12)


def test_dropout_uses_only_the_runs_stream(tmp_path):
    problem = classes()
    network, _ = with_file(tmp_path, problem)
    network.train(False)
    torch.manual_seed(1)
    rng_state = torch.get_rng_state()
    a, b, c = (network(problem.test.x, generator(seed)) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), rng_state)
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert not torch.equal(a, network(problem.test.x))
    assert network.dropout == 0.3
    passes = network(problem.test.x, generator(0), 4)
    assert passes.shape[0] == 4


def test_equal_seeds_give_equal_modules_without_global_state():
    problem = classes()
    torch.manual_seed(1)
    rng_state = torch.get_rng_state()
    first, same, other = (
        model(arguments=sizes(problem)).build(problem, Streams(seed)).theta for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), rng_state)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


def test_batch_norm_learns_in_training_but_not_as_a_density(tmp_path):
    problem = classes()
    network, net = with_file(tmp_path, problem)
    mean = network.statistics()[0].clone()
    network.log_likelihood(network.theta.detach()[None], problem.train)
    assert torch.equal(network.statistics()[0], mean)
    network.train(True)
    network(problem.train.x)
    net.train()(problem.train.x)
    assert_close(network.statistics()[0], net.norm.running_mean)
    assert not torch.equal(network.statistics()[0], mean)
    batches = list(problem.train.x.split(20))
    network.gather(batches)
    activations = torch.stack(
        [net.first(x) for x in batches]
    ).detach()  # inputs of the normalisation, by batch
    assert_close(network.statistics()[0], activations.mean((0, 1)))
    assert_close(network.statistics()[1], activations.var(1).mean(0))


def test_ensemble_members_are_built_separately():
    problem = classes()
    network = model(arguments=sizes(problem)).build(problem, Streams(0))
    theta = network.initial(3, generator(0))
    assert theta.shape == (3, network.dim)
    assert not torch.equal(theta[0], theta[1])
    # parameters that are not drawn are equal in all members
    assert (theta == float(torch.tensor(0.7))).sum() == 9


def test_images_keep_their_shape():
    problem, _ = load("digits", n_train=20, n_test=5)
    network = model("own_things:Images", inputs="image").build(problem, Streams(0))
    assert network(problem.test.x).shape == (5, 1, 10)
    with pytest.raises(ConfigMismatchError, match=r"not images; use model\.inputs=flat"):
        model("own_things:Images", inputs="image").build(classes(), Streams(0))


def test_one_output_for_a_binary_label_is_its_log_odds():
    problem = classes(n_classes=2)
    module = model(arguments={"inputs": 4, "outputs": 1}).build(problem, Streams(0)).train(False)
    f = module(problem.test.x)
    assert f.shape == (60, 1, 2)
    assert torch.equal(f[..., 0], torch.zeros_like(f[..., 0]))


@pytest.mark.parametrize(
    ("place", "keys", "message"),
    [
        ("own_things:Nett", {}, r"own_things has no function or class Nett; it has "),
        ("no_such_module:Net", {}, r"ModuleNotFoundError: No module named 'no_such_module'"),
        (
            "own_things:log_density",
            {"arguments": {"theta": torch.zeros(1, 1)}},
            r"creates a Tensor, not a torch.nn.Module",
        ),
        (PLACE, {"arguments": {"hiden": 3}}, r"model.arguments: TypeError: .*hiden.*fix it there"),
        (
            PLACE,
            {"arguments": {"inputs": 4, "outputs": 7}},
            r"returns \[16, 7\] for a batch, but must return \[rows, 3\]",
        ),
        (
            "own_things:Broken",
            {},
            r"RuntimeError: mat1 and mat2 .*own_things.py, line \d+\); fix it there",
        ),
    ],
)
def test_errors_of_modules_are_one_line(place, keys, message):
    with pytest.raises(ConfigMismatchError, match=message) as error:
        model(place, **keys).build(classes(), Streams(0))
    assert "\n" not in str(error.value)


def test_recurrent_module_uses_the_given_parameters():
    """Cached tensors of nn.LSTM must not replace its parameters."""
    torch.manual_seed(0)
    problem = classes(n_inputs=2, n_classes=2)
    network = model("own_things:Recurrent").build(problem, Streams(0))
    net = Recurrent().double()
    theta = torch.cat([p.detach().flatten() for p in net.parameters()])
    outputs = network.outputs(theta[None], problem.test.x)[0, :, 0]
    assert torch.allclose(outputs, net(problem.test.x), rtol=1e-12, atol=1e-12)


def test_module_with_copies_of_its_parameters_is_refused():
    with pytest.raises(ConfigMismatchError, match="forward must read its parameters") as error:
        model("own_things:Keeping").build(classes(n_inputs=2, n_classes=2), Streams(0))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("wrapped", ["", "module.", "_orig_mod.", "module.model."])
def test_wrapped_module_keeps_its_own_weights(tmp_path, wrapped):
    problem = classes()
    keys = {"arguments": sizes(problem)}
    net = Net(**sizes(problem)).double()
    torch.save(
        {"net": {f"{wrapped}{name}": value for name, value in net.state_dict().items()}},
        tmp_path / "w.pt",
    )
    network = model(path=str(tmp_path / "w.pt"), **keys).build(problem, Streams(0)).train(False)
    assert torch.equal(network(problem.test.x)[:, 0], net.eval()(problem.test.x))


def test_foreign_weights_are_refused(tmp_path):
    save_file({"first.weight": torch.zeros(3, 9)}, tmp_path / "w.safetensors")
    with pytest.raises(
        ConfigMismatchError,
        match=r"lacks scale, first.bias, .* \d+ more; first.weight .* \[3, 9\]",
    ):
        model(path=str(tmp_path / "w.safetensors"), arguments={"inputs": 4, "outputs": 3}).build(
            classes(), Streams(0)
        )
