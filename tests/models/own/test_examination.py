"""Checks of a user's network before training, and outputs that are probabilities."""

import pytest
import torch
from support.runs.configured import F64, component
from support.small.small_problems import classes, real, train
from torch.autograd import grad
from torch.testing import assert_close

from components.attackers.attacked import Attacked
from components.contracts.class_outputs import guess_output_kind, to_logits
from components.errors import ConfigMismatchError, QuestionableConfigWarning
from runner.execution.rng import Streams


def model(name="Victim", outputs=None, **arguments):
    return component(
        "model", "module", class_path=f"own_victims:{name}", outputs=outputs, arguments=arguments
    )


def build(problem, name="Victim", outputs=None, **arguments):
    return model(name, outputs, **arguments).build(problem, Streams(0))


SUM_TO_ONE = "every row of its outputs sums to one"
IN_UNIT = r"every output lies in \[0, 1\], .*"
WRONG_OUTPUTS = r"model\.outputs=log_probabilities: .* set model\.outputs"
BY_OTHERS = "the outputs of a row depend on other rows of its batch"


@pytest.mark.parametrize(
    ("n_classes", "keys", "message"),
    [
        (3, {"last": "softmax"}, rf"{SUM_TO_ONE}, .* set model\.outputs=probabilities, or remove"),
        (2, {"last": "softmax", "n_outputs": 2}, SUM_TO_ONE),
        (3, {"last": "sigmoid"}, rf"{IN_UNIT}\(model\.outputs=logits if this is intended\)"),
        (2, {"last": "sigmoid", "n_outputs": 1}, rf"{IN_UNIT}set model\.outputs=probabilities"),
        (3, {"last": "clipped"}, IN_UNIT),
        (2, {"last": "log_sigmoid", "n_outputs": 1}, r"set model\.outputs=log_probabilities"),
        (3, {"outputs": "probabilities", "scale": 10.0}, r"\.outputs=probabilities: .* set model"),
        (3, {"outputs": "log_probabilities", "scale": 10.0}, WRONG_OUTPUTS),
        (3, {"outputs": "log_probabilities", "last": "softmax", "scale": 10.0}, WRONG_OUTPUTS),
        (3, {"name": "InPlace"}, r"changes its input in place \(x -= …"),
        (3, {"name": "Drop"}, r"its forward draws random numbers \(like F\.dropout"),
        (3, {"name": "Centred"}, BY_OTHERS),
        (3, {"name": "BatchStatistics"}, f"{BY_OTHERS} .*track_running_stats=False"),
        (3, {"name": "OverRows"}, BY_OTHERS),
        (3, {"name": "WholeRange"}, BY_OTHERS),
        (3, {"name": "OverTime"}, BY_OTHERS),
        (3, {"name": "Pooled"}, r"returns \[1, 3\] for a batch, but must return \[rows, 3\]"),
        (
            3,
            {"name": "Whole"},
            r"returns int64 .* must return \[rows, 3\] of floating-point numbers",
        ),
        (3, {"name": "NoNumber"}, r"gives nan for \d+ of 16 training rows before training"),
        (3, {"name": "CutOff"}, rf"{IN_UNIT}set model\.outputs=probabilities"),
        (3, {"name": "Lazy"}, r"first\.weight .* lazy layer; give the layer its sizes"),
        (3, {"name": "Remembers"}, "stores tensors in its forward"),
    ],
)
def test_unusable_networks_are_refused_in_one_line(n_classes, keys, message):
    problem = classes(n_classes=n_classes)
    original = problem.train.x.clone()
    with pytest.raises(ConfigMismatchError, match=rf"\A.*{message}.*\Z"):
        build(problem, **keys)
    assert torch.equal(problem.train.x, original)


@pytest.mark.parametrize("last", ["none", "zero", "relu", "tanh", "log_softmax"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_logits_are_not_mistaken_for_probabilities(last, scale, n_outputs):
    """Small, all-zero and positive logits, which may lie in [0, 1] before training."""
    if (last, n_outputs) != ("log_softmax", 1):
        build(classes(n_classes=2), last=last, scale=scale, n_outputs=n_outputs, hidden=4)


def test_logits_between_0_and_1_remain_logits():
    net = build(classes(), last="half")
    assert guess_output_kind(net(classes().train.x)) == "in [0, 1]"


def test_declared_logits_are_accepted_unless_rows_sum_to_one():
    build(classes(), outputs="logits", last="sigmoid")
    with pytest.raises(
        ConfigMismatchError, match=r"sums to one.*; set model.outputs=probabilities"
    ):
        build(classes(), outputs="logits", last="softmax")


def test_independent_class_probabilities_are_normalised():
    with pytest.warns(
        QuestionableConfigWarning,
        match=r"rows of .*Victim sum .* by its sum; return probabilities",
    ):
        net = build(classes(), outputs="probabilities", last="sigmoid")
    p = net._answers(net.theta, classes().test.x)
    assert_close(net(classes().test.x).softmax(-1), p / p.sum(-1, keepdim=True))


def test_real_labels_reject_outputs_of_classes():
    with pytest.raises(
        ConfigMismatchError,
        match=r"model\.outputs=probabilities: .*; remove model\.outputs",
    ):
        build(real(), outputs="probabilities", inputs=3, n_outputs=2)
    build(real(), inputs=3, n_outputs=2, last="sigmoid")


@pytest.mark.parametrize(
    ("outputs", "last", "n_outputs"),
    [
        ("probabilities", "softmax", 3),
        ("log_probabilities", "log_softmax", 3),
        ("probabilities", "sigmoid", 1),
        ("log_probabilities", "log_sigmoid", 1),
    ],
)
def test_probabilities_equal_the_logits(outputs, last, n_outputs):
    """One output is the probability of class 1, and its logit the log odds."""
    problem = classes(n_classes=max(n_outputs, 2))
    ours = build(problem, outputs=outputs, last=last, n_outputs=n_outputs)
    same(ours, build(problem, n_outputs=n_outputs), problem)


def same(ours, theirs, problem):
    """Check log-probabilities, and the gradients of the log-likelihood in weights and inputs."""
    x = problem.test.x
    y = problem.test
    results = []
    for network in (ours, theirs):
        leaf = x.clone().requires_grad_()
        value = network.log_prob(network(leaf), y).sum()
        results.append((value, *grad(value, [network.theta, leaf])))
    assert_close(*results, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [F64, torch.float32])
@pytest.mark.parametrize("outputs", ["probabilities", "log_probabilities"])
def test_logits_of_certain_probabilities_are_finite(dtype, outputs):
    f = torch.tensor([[-2000.0, -200, -30, -1, 0, 1, 30, 200, 2000]], dtype=dtype).T
    f.requires_grad_()
    for values in (f.sigmoid(), torch.cat([f.sigmoid(), (-f).sigmoid()], 1)):
        given = values if outputs == "probabilities" else values.clamp_min(1e-37).log()
        logits = to_logits(given, outputs)
        (gradient,) = grad(logits.log_softmax(-1)[:, 0].sum(), f, retain_graph=True)
        assert torch.isfinite(logits).all()
        assert torch.isfinite(gradient).all()
        middle = (logits[2:7, -1] - logits[2:7, 0]).abs()
        assert_close(middle[1:4], f[3:6, 0].abs())


@pytest.mark.parametrize("name", ["Single", "KeepsFeatures", "Recurrent"])
def test_network_is_trained_copied_and_attacked_in_its_dtype(name):
    problem = classes()
    fgsm = component("attacker", "fgsm")
    method = component("inference", "map")
    problem.attacker = fgsm
    state, rng = train(method, model(name), problem, 2)
    victim = Attacked(method.posterior(state))
    x_adv = fgsm.perturb(victim, problem.test.x, problem.test.y, rng, 0.3)
    values = [
        state.network.log_prob(state.network(z), problem.test).sum()
        for z in (problem.test.x, x_adv)
    ]
    assert x_adv.dtype == values[0].dtype == F64
    assert values[1].item() < values[0].item()


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_squeezed_dimensions_of_one_row_are_restored(n_outputs):
    problem = classes(n_classes=2)
    ours, theirs = (build(problem, name, n_outputs=n_outputs) for name in ("Squeezed", "Victim"))
    for x in (problem.test.x[:1], problem.test.x[:5]):
        assert_close(ours(x), theirs(x))


def test_impossible_class_has_the_least_logit():
    problem = classes()
    ours = build(problem, "Impossible")
    theirs = build(problem)
    x = problem.test.x
    assert torch.isfinite(ours(x)).all()
    assert_close(ours(x).softmax(-1)[..., :2], theirs(x)[..., :2].softmax(-1))
    assert ours(x).detach().softmax(-1)[..., 2].max() < 1e-300


def test_non_finite_gradient_is_refused_before_training():
    with pytest.raises(
        ConfigMismatchError,
        match=r"parameters is not finite .* or use inference=fixed",
    ):
        train(component("inference", "map"), model("LogOfSoftmax"), classes(), 1)
    train(component("inference", "fixed"), model("LogOfSoftmax"), classes(), 1)


@pytest.mark.parametrize("name", ["NoGrad", "Detached", "Rounded"])
@pytest.mark.parametrize("inference", ["map", "deep_ensemble", "sgld", "mean_field_vi"])
def test_untrainable_network_is_refused_before_training(name, inference):
    keys = {"mean_field_vi": {"estimator": "weights"}}.get(inference, {})
    with pytest.raises(
        ConfigMismatchError,
        match=r"differentiable in its parameters.* so training has no effect; remove torch.no_grad.* or use inference=fixed",
    ):
        train(component("inference", inference, **keys), model(name), classes(), 1)


def test_untrainable_network_can_be_evaluated():
    problem = classes()
    state, rng = train(component("inference", "fixed"), model("NoGrad"), problem, 1)
    plain = train(component("inference", "fixed"), model(), problem, 1)[0]
    ours, theirs = (
        component("inference", "fixed").posterior(s).predict(problem.test.x, rng.noise).logits
        for s in (state, plain)
    )
    assert torch.equal(ours, theirs)
    # follows no gradient
    train(component("inference", "random_walk_mh", chains=2), model("NoGrad"), problem, 2)


@pytest.mark.parametrize("name", ["NoInputGradient", "NoGrad"])
def test_gradient_attacker_requires_input_gradients(name):
    problem = classes()
    problem.attacker = component("attacker", "square")
    build(problem, name)
    problem.attacker = component("attacker", "pgd")
    with pytest.raises(
        ConfigMismatchError,
        match=r"differentiable in its inputs, .* attacker=pgd .*; remove .*attacker=square",
    ):
        build(problem, name)


def test_examination_uses_no_random_stream():
    torch.manual_seed(3)
    rng_state = torch.get_rng_state()
    build(classes())
    with pytest.raises(ConfigMismatchError):
        build(classes(), "Drop")
    assert torch.equal(torch.get_rng_state(), rng_state)
