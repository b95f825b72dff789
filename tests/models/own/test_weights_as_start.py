"""Training and chains that start from weights in a file."""

import re

import pytest
import torch
from support.runs.configured import component, load
from support.small.saved_weights import build_from_file, mlp, model, save_weights
from support.small.small_problems import classes, real

from components.errors import ConfigMismatchError
from runner.execution.rng import Streams


@pytest.mark.parametrize(
    ("network", "kind"),
    [("mlp", classes), ("mann2", real), ("mlp", real)],
)
def test_saved_network_is_restored(tmp_path, network, kind):
    """Weights by their own names, including the noise of real labels and the standardisation of
    pixels."""
    problem = kind()
    was = component("model", network, widths=[5]).build(problem, Streams(3))
    was.log_noise.data.fill_(0.3)
    module = build_from_file(problem, save_weights(tmp_path, was), {"name": network, "widths": [5]})
    assert torch.equal(module(problem.test.x), was(problem.test.x))
    assert torch.equal(module.log_noise, was.log_noise)


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_chains_and_ensembles_start_around_the_file(tmp_path, spread):
    problem = classes()
    start = model(save_weights(tmp_path, mlp(4, 7, 3)), spread=spread)
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
            assert z.std() == pytest.approx(1, abs=4 * (2 * z.numel()) ** -0.5)


@pytest.mark.parametrize(
    "name", ["map", "mean_field_vi", "swag", "bayes_by_backprop", "adversarial_training"]
)
def test_network_inference_starts_at_the_file(tmp_path, name):
    net = mlp(4, 7, 3)
    problem = classes()
    start = model(save_weights(tmp_path, net))
    keys = {"initial_std": 1e-9} if name in ("mean_field_vi", "bayes_by_backprop") else {}
    if name == "adversarial_training":
        keys["training_attacker"] = component("attacker", "fgsm")
    inference = component("inference", name, **keys)
    rng = Streams(0)
    state = inference.init(start.build(problem, rng), problem, rng)
    probs = inference.posterior(state).predict(problem.test.x, rng.noise).probs[:, 0]
    assert torch.allclose(probs, net(problem.test.x).softmax(1), atol=1e-5)


def test_other_network_kinds_are_filled_by_their_own_names(tmp_path):
    problem, _ = load("digits", n_train=30, n_test=10)
    was = component("model", "vgg", depth=7, width=2).build(problem, Streams(3))
    was.running_mean_0.data.fill_(0.2)
    path = save_weights(tmp_path, was)
    module = build_from_file(problem, path, {"name": "vgg", "depth": 7, "width": 2})
    assert torch.equal(module.eval()(problem.test.x), was.eval()(problem.test.x))
    with pytest.raises(
        ConfigMismatchError, match=re.escape("running_mean_0 is [2] instead of [3]")
    ):
        build_from_file(problem, path, {"name": "vgg", "depth": 7, "width": 3})
