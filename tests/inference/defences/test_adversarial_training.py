import pytest
import torch
from smoothed_networks import check_two_steps
from support.small.small_problems import attacked_problem, classes, component, train
from torch.testing import assert_close

from components.errors import ConfigMismatchError
from components.inference.defences.training_threat import TrainingThreat
from components.posteriors.point_estimate import PointEstimate
from runner.execution.rng import Streams

MLP = component("model", "mlp", widths=[6], activation="tanh")


def defence(**settings):
    return component(
        "inference", "adversarial_training", **({"optimizer": "sgd", "lr": 0.1} | settings)
    )


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_attacks_of_size_zero_give_map(optimizer):
    """Bit-identical with only attacked rows; equal up to rounding with clean rows and their
    copies."""
    settings = {"optimizer": optimizer, "lr": 0.05}
    plain = train(component("inference", "map", **settings), MLP, attacked_problem(), 12)[
        0
    ].network.theta
    reference = train(
        defence(**settings, train_eps=0.0, mixture="attacked"), MLP, attacked_problem(), 12
    )[0].network.theta
    half = train(defence(**settings, train_eps=0.0), MLP, attacked_problem(), 12)[0].network.theta
    assert torch.equal(reference, plain)
    assert_close(half, plain)
    theta_after = train(defence(**settings, train_eps=0.2), MLP, attacked_problem(), 12)[
        0
    ].network.theta
    assert (theta_after - plain).detach().abs().max() > 1e-3


@pytest.mark.parametrize(("mixture", "clean_share"), [("half", 0.5), ("attacked", 0.0)])
def test_two_steps_match_equation(mixture, clean_share):
    """θ := θ − η ∇[−½ (mean log p(y|x) + mean log p(y|x')) − log p(θ)/N], x' = clip(x − ε sign ∇_x
    log p(y|x)) at the θ of the same step."""

    def fit(network, theta, batch):
        x = batch.x.clone().requires_grad_()
        log_likelihood = network.predictive(theta.detach(), x).log_prob(batch.y).sum()
        (slope,) = torch.autograd.grad(log_likelihood, x)
        attacked = (batch.x - 0.15 * slope.sign()).clamp(0, 1)
        clean = network.predictive(theta, batch.x).log_prob(batch.y).mean()
        fooled = network.predictive(theta, attacked).log_prob(batch.y).mean()
        return clean_share * clean + (1 - clean_share) * fooled

    method = defence(momentum=0.0, train_eps=0.15, mixture=mixture)
    check_two_steps(method, attacked_problem(), fit)


def test_attack_gives_parameters_no_gradient():
    problem = attacked_problem("pgd", steps=3)
    network = MLP.build(problem, Streams(0))
    threat = TrainingThreat(problem, 0.2)
    rng = Streams(1)
    x = threat.attack(PointEstimate(network), problem.train, rng)
    assert all(p.grad is None and p.requires_grad for p in network.parameters())
    assert not x.requires_grad
    assert 0 < (x - problem.train.x).abs().max() <= 0.2 + 1e-12


def test_training_disables_early_stopping():
    """A defence needs the largest loss; PGD with early stopping does not change rows that are
    already misclassified."""
    problem = attacked_problem("pgd", steps=5, random_start=False)
    network = MLP.build(problem, Streams(0))
    threat = TrainingThreat(problem, 0.2)
    assert problem.attacker.stop_when_broken
    goes_on = threat.attack(PointEstimate(network), problem.train, Streams(1))
    stops = problem.attacker.perturb(
        threat.victim(PointEstimate(network)), problem.train.x, problem.train.y, Streams(1), 0.2
    )

    def loss(x):
        return -float(
            network.output_predictive(network(x)[None]).log_prob(problem.train.y).mean().detach()
        )

    assert loss(goes_on) > loss(stops)


def test_invalid_keys_are_refused():
    problem = classes()
    with pytest.raises(ConfigMismatchError, match=r"attacker=none: .* requires an evasion attack"):
        TrainingThreat(problem, 0.1)
    problem.attacker = component("attacker", "gaussian_contamination")
    with pytest.raises(ConfigMismatchError, match="attacker=gaussian_contamination"):
        TrainingThreat(problem, 0.1)


def test_training_attacker_may_differ():
    """The step equals the step of an experiment with that attacker; the evaluation keeps its own
    attacker."""
    pgd = component("attacker", "pgd", steps=3)
    attacked = attacked_problem("pgd", steps=3)
    other = attacked_problem("fgsm")
    expected = train(defence(train_eps=0.2), MLP, attacked, 6)[0].network.theta
    theta_after = train(defence(train_eps=0.2, training_attacker=pgd), MLP, other, 6)[
        0
    ].network.theta
    assert torch.equal(theta_after, expected)
    assert not torch.equal(
        theta_after,
        train(defence(train_eps=0.2), MLP, attacked_problem("fgsm"), 6)[0].network.theta,
    )
    assert other.attacker.name == "fgsm"
    other.attacker = None  # a defence requires no attacker for an evaluation without an attack
    assert torch.equal(
        train(defence(train_eps=0.2, training_attacker=pgd), MLP, other, 6)[0].network.theta,
        theta_after,
    )
    with pytest.raises(
        ConfigMismatchError,
        match=r"inference.training_attacker=gaussian_contamination: a defence requires",
    ):
        TrainingThreat(
            other, 0.1, training_attacker=component("attacker", "gaussian_contamination")
        )
