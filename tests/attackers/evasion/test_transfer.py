"""Grey box: an attack on a separately trained surrogate is transferred, and is weaker than a white
box."""

from dataclasses import replace

import pytest
import torch
from support.runs.configured import component, threat
from support.small.small_problems import advance, classes, fit_mlp

from components.attackers.attacked import Attacked
from components.contracts.problems import Batch
from components.errors import ConfigMismatchError
from components.evaluation.security.curves import security_curve
from components.inference.defences.training_threat import TrainingThreat
from runner.execution.rng import Streams

EPS = [0.0, 0.1, 0.3]
MLP = component("model", "mlp", widths=[8])


def transfer(attack=None, **keys):
    attack = attack or component("attacker", "pgd", steps=8)
    settings = {"surrogate": MLP, "inference": component("inference", "map", lr=0.02)}
    return component(
        "attacker", "transfer", **(settings | {"training_steps": 120} | keys), attack=attack
    )


def curve_of(attacker, posterior, problem, rng):
    return security_curve(problem, posterior, attacker, threat(attacker, EPS), rng)


@pytest.fixture(scope="module")
def victim():
    problem = classes(n=300, n_inputs=8, batch_size=50)
    return problem, *fit_mlp(problem, [16], 300, lr=0.02)


def test_transfer_matches_attack_on_explicit_surrogate(victim):
    """Rows, initial values and minibatches come only from the attack stream: explicit training
    gives the same x'."""
    problem, posterior, _ = victim
    ours = transfer(share=0.4).with_problem(problem, Streams(3))
    streams = Streams(3)

    def stream(name, index):
        place = ("data", "init", "batches").index(name)
        generator = streams.at("attack", (1 + place) * 10**9 + 1 + index)
        return (
            generator
            if name == "batches"
            else torch.Generator().manual_seed(generator.initial_seed())
        )

    class Own:
        replicate = 0
        data = stream("data", -1)
        init = stream("init", -1)

        def at(self, name, index):
            return stream(name, index)

    rng = Own()
    rows = torch.randperm(300, generator=rng.data)[:120]
    informed = replace(
        problem,
        train=Batch(problem.train.x[rows], problem.train.y[rows], problem.train.mask[rows], 1.0),
    )
    method = component("inference", "map", lr=0.02)
    state = method.init(MLP.build(informed, rng), informed, rng)
    state, _ = advance(method, state, informed, rng, 0, 120)
    x = problem.test.x
    y = problem.test.y
    attacked = Attacked(method.posterior(state), problem.bounds)
    literal = component("attacker", "pgd", steps=8, stop_when_broken=False).perturb(
        attacked, x, y, Streams(0), 0.1
    )
    assert torch.equal(
        ours.perturb(Attacked(posterior, problem.bounds), x, y, Streams(0), 0.1), literal
    )


def test_surrogate_is_deterministic_and_trained_once(victim):
    problem, posterior, _ = victim
    rng = Streams(1)
    rng_state = rng.state()
    first, second = (transfer().with_problem(problem, rng) for _ in range(2))
    assert all(torch.equal(rng_state[name], state) for name, state in rng.state().items())
    assert first.with_problem(problem, rng) is first
    x = problem.test.x
    y = problem.test.y
    attacked = Attacked(posterior, problem.bounds)
    assert torch.equal(
        first.perturb(attacked, x, y, Streams(0), 0.1),
        second.perturb(attacked, x, y, Streams(0), 0.1),
    )
    other = transfer().with_problem(problem, Streams(2))
    assert not torch.equal(
        first.perturb(attacked, x, y, Streams(0), 0.1),
        other.perturb(attacked, x, y, Streams(0), 0.1),
    )


def test_grey_box_lies_between_noise_and_white_box(victim):
    problem, posterior, rng = victim
    white = curve_of(component("attacker", "pgd", steps=8), posterior, problem, rng).rows
    curve = curve_of(transfer(), posterior, problem, rng)
    grey = curve.rows
    assert curve.verdict, curve.checks
    assert "a white box is not weaker than this grey box" in {check.name for check in curve.checks}
    assert set(grey["knowledge"]) == {"grey box"}
    assert set(white["knowledge"]) == {"white box"}
    last = -2  # ε = 0.1, at which neither has broken every row
    assert (
        white["accuracy"].iloc[last]
        < grey["accuracy"].iloc[last]
        < grey["random_accuracy"].iloc[last]
    )


def test_grey_box_stronger_than_gradient_fails_check(victim):
    """A victim that hides its gradient, attacked through a surrogate: the check reports a fault of
    the gradient, not of the victim."""
    problem, posterior, rng = victim

    class Flipped:
        def predict(self, x, g):
            predictive = posterior.predict(x, g)
            f = predictive.logits
            return type(predictive)(2 * f.detach() - f)

    checks = curve_of(transfer(), Flipped(), problem, rng).checks
    failed = {check.name for check in checks if check.passed is False}
    assert "a white box is not weaker than this grey box" in failed


def test_victim_without_gradient_is_attacked_by_transfer(victim):
    problem, posterior, rng = victim

    class Forest:
        def predict(self, x, g):
            predictive = posterior.predict(x, g)
            return type(predictive)(predictive.logits.detach())

    rows = curve_of(transfer(), Forest(), problem, rng).rows
    assert rows["accuracy"].iloc[-1] < 0.5 < rows["random_accuracy"].iloc[-1]


def test_defence_trains_against_transfer(victim):
    problem, posterior, _ = victim
    threatened = replace(problem, attacker=transfer())
    rng = Streams(0)
    attacked = TrainingThreat(threatened, 0.1, rng).attack(posterior, problem.train, rng)
    assert 0 < (attacked - problem.train.x).abs().max() <= 0.1 + 1e-9


def test_invalid_keys_are_refused(victim):
    problem, posterior, rng = victim
    with pytest.raises(ConfigMismatchError, match=r"attacker.share: 0.001 .*; raise it"):
        transfer(share=0.001).with_problem(problem, rng)
    with pytest.raises(ConfigMismatchError, match="surrogate is not trained; call with_problem"):
        transfer().perturb(Attacked(posterior), problem.test.x, problem.test.y, rng, 0.1)
