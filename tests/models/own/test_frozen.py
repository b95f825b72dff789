"""Frozen parameters stay outside θ in every family of methods; layers can be frozen by name."""

import pytest
import torch
from own_frozen import Transfer
from support.runs.configured import F64, component, load
from support.small.small_problems import classes, tensors, train, train_and_resume
from torch import nn
from torch.autograd import grad
from torch.distributions import Normal
from torch.testing import assert_close

from components.contracts.capabilities import AffineLayers, ClosedFormScore, Collapsible
from components.errors import ConfigMismatchError
from runner.execution.rng import Streams

N_HEAD = 6 * 3 + 3
FAMILIES = {
    "map": {},
    "swag": {"every": 1, "burn_in": 1},
    "iterate_ensemble": {"burn_in": 1, "every": 1},
    "deep_ensemble": {"members": 2},
    "laplace": {"modes": 2},
    "mean_field_vi": {"estimator": "weights"},
    "renyi_vi": {},
    "sgld": {"chains": 2, "burn_in": 0},
    "svgd": {},
    "hmc": {"chains": 2},
    "nuts": {"chains": 2},
    "random_walk_mh": {"chains": 2},
    "adversarial_training": {"training_attacker": "fgsm"},
}


def method(name):
    keys = dict(FAMILIES.get(name, {}))
    if "training_attacker" in keys:
        keys["training_attacker"] = component("attacker", keys["training_attacker"])
    return component("inference", name, **keys)


def network(kind, folder, freeze=("0",), **arguments):
    """A module with a frozen body, or a file with frozen layers; both have 21 free numbers."""
    if kind == "module":
        path = "own_frozen:Transfer"
        return component("model", "module", class_path=path, arguments=arguments, prior_std=1e6)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    torch.save(net.state_dict(), folder / "w.pt")
    keys = {"network": component("model", "mlp", widths=[6]), "freeze": list(freeze), "spread": 0.1}
    return component("model", "state_dict", path=str(folder / "w.pt"), **keys)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("kind", ["module", "state_dict"])
def test_frozen_parameters_stay_and_runs_resume(tmp_path, kind, name):
    model = network(kind, tmp_path)
    problem = classes(batch_size=20)
    inference = method(name)
    original = model.build(problem, Streams(0))
    assert len(original.theta) == len(original.prior_std) == N_HEAD
    state, rng = train(inference, model, problem, 4)
    predictive = inference.posterior(state).predict(problem.test.x, rng.noise)
    assert predictive.probs.isfinite().all()
    # no learnt tensor has the length of all parameters, which stay unchanged
    values = [v for v in tensors(state) if v.is_floating_point()]
    whole = [v for v in values if len(original.weights) in v.shape]
    assert all(torch.equal(v, original.weights) for v in whole)
    assert any(N_HEAD in v.shape for v in values)
    again = train_and_resume(inference, model, problem, 4, 2, tmp_path)[0]
    assert all(map(torch.equal, tensors(state), tensors(again)))


def test_frozen_networks_learn_like_plain_ones(tmp_path):
    problem = classes()
    net = Transfer().double()
    model = network("module", tmp_path)
    ours = model.build(problem, Streams(0))
    assert ours.facts == {"model": "3 of 5 parameters frozen, 34 of 55 values"}
    nn.utils.vector_to_parameters(ours.weights, net.parameters())
    descent = component("inference", "map", optimizer="sgd", momentum=0.0, lr=0.5)
    state, _ = train(descent, model, problem, 20)
    step = torch.optim.SGD(net.parameters(), 0.5)
    for _ in range(20):
        step.zero_grad()
        nn.functional.cross_entropy(net(problem.train.x), problem.train.y[:, 0]).backward()
        step.step()
    f = state.network.train(False)(problem.test.x)[:, 0]
    assert_close(f, net(problem.test.x))


@pytest.mark.parametrize("name", [*FAMILIES, "importance_sampling"])
@pytest.mark.parametrize(
    ("frozen", "message"),
    [
        ("all", r"all of its parameters are frozen.*inference=fixed"),
        (
            "detached",
            r"has no gradient although .*requires_grad_\(False\), or use inference=fixed",
        ),
    ],
)
def test_untrained_networks_are_refused(tmp_path, name, frozen, message):
    """Only the prior would move a body under ``torch.no_grad``; methods without gradients cannot
    refuse it."""
    if frozen == "detached" and name in ("random_walk_mh", "importance_sampling"):
        return
    model = network("module", tmp_path, frozen=frozen)
    problem = classes()
    with pytest.raises(ConfigMismatchError, match=message):
        train(method(name), model, problem, 1)
    train(component("inference", "fixed"), model, problem, 1)


@pytest.mark.parametrize("freeze", [["0"], ["2.weight"], ["*.bias"]])
def test_file_with_frozen_layers_has_the_density_of_the_others(tmp_path, freeze):
    problem = classes()
    part, whole = (
        network("state_dict", tmp_path, f).build(problem, Streams(0)) for f in (freeze, [])
    )
    assert torch.equal(part(problem.test.x), whole(problem.test.x))
    K = part.theta.detach() + torch.randn(3, part.dim, dtype=F64)
    full = part.all_weights(K)
    assert torch.equal(full[:, part.free], K)
    likelihoods = [
        net.log_likelihood(theta, problem.train) for net, theta in ((part, K), (whole, full))
    ]
    assert torch.allclose(*likelihoods)
    assert_close(part.log_prior(K), Normal(0.0, 1.0).log_prob(K).sum(1))
    x = problem.test.x.clone().requires_grad_()
    f, reverse = part.reverse(x.detach())
    assert_close(reverse(torch.ones_like(f)), grad(part(x).sum(), x)[0])


def test_frozen_files_do_not_offer_unsupported_capabilities(tmp_path):
    closed = {AffineLayers, ClosedFormScore, Collapsible}
    assert closed <= network("state_dict", tmp_path, []).capabilities()
    assert not closed & network("state_dict", tmp_path).capabilities()
    for freeze in (["fc1"], ["*"], ["0", "fc1"]):
        with pytest.raises(
            ConfigMismatchError,
            match=r"model\.freeze=.*must match .* 0\.weight, 0\.bias",
        ):
            network("state_dict", tmp_path, freeze).build(classes(), Streams(0))


def test_frozen_layers_of_other_networks_stay_fixed(tmp_path):
    problem, _ = load("digits", n_train=40, n_test=10)
    vgg = component("model", "vgg", depth=7, width=2)
    torch.save(vgg.build(problem, Streams(3)).state_dict(), tmp_path / "vgg.pt")
    model = component(
        "model", "state_dict", path=str(tmp_path / "vgg.pt"), network=vgg, freeze=["*s.0"]
    )
    original = model.build(problem, Streams(0))
    after = train(component("inference", "map"), model, problem, 3)[0].network.state_dict()
    stay = {n for n, value in original.state_dict().items() if torch.equal(value, after[n])}
    assert stay == {"kernels.0", "gains.0", "shifts.0", "mean", "std"}
    assert original.facts["model"].startswith("3 of 20 parameters frozen")
