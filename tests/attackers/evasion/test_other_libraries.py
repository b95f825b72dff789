"""Our PGD against torchattacks, foolbox and the Adversarial Robustness Toolbox, if installed."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.runs.configured import component, generator

from components.attackers.attacked import Attacked
from components.contracts.predictive import Categorical

pytestmark = pytest.mark.slow
EPS = 8 / 255 * 2
STEPS = 40
ROWS = 600
ALPHA = 2.5 / STEPS


class Digits:
    """A network for scikit-learn's digits, trained for a few seconds, in the form that attackers
    and libraries require."""

    def __init__(self):
        from sklearn.datasets import load_digits

        data = load_digits()
        self.x = torch.tensor(data.data / 16, dtype=torch.float32)
        self.y = torch.tensor(data.target)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.network = torch.nn.Sequential(
                torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)
            )
        adam = torch.optim.Adam(self.network.parameters(), lr=0.01)
        for _ in range(150):
            adam.zero_grad()
            torch.nn.functional.cross_entropy(self.network(self.x[ROWS:]), self.y[ROWS:]).backward()
            adam.step()
        self.network.requires_grad_(False).eval()
        self.x = self.x[:ROWS]
        self.y = self.y[:ROWS]

    def predict(self, x, g):
        return Categorical(self.network(x)[None, :, None])

    def accuracy(self, x):
        return float((self.network(x).argmax(-1) == self.y).double().mean())


@pytest.fixture(scope="module")
def digits():
    return Digits()


@pytest.fixture(scope="module")
def our_accuracy(digits):
    attacker = component("attacker", "pgd", steps=STEPS, step_size=ALPHA)
    rng = SimpleNamespace(attack=generator())
    x_adv = attacker.perturb(Attacked(digits, (0.0, 1.0)), digits.x, digits.y[:, None], rng, EPS)
    assert digits.accuracy(digits.x) > 0.9
    return digits.accuracy(x_adv)


def compare(our_accuracy, theirs):
    """Check that the accuracies differ by less than half a point, and that ours is not higher by
    more than one row, which a random start can decide."""
    assert our_accuracy <= theirs + 1.5 / ROWS
    assert our_accuracy == pytest.approx(theirs, abs=0.005)


def test_pgd_matches_torchattacks(digits, our_accuracy):
    torchattacks = pytest.importorskip("torchattacks")
    attack = torchattacks.PGD(
        digits.network, eps=EPS, alpha=ALPHA * EPS, steps=STEPS, random_start=True
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        compare(our_accuracy, digits.accuracy(attack(digits.x, digits.y)))


def test_pgd_matches_foolbox(digits, our_accuracy):
    foolbox = pytest.importorskip("foolbox")
    model = foolbox.PyTorchModel(digits.network, bounds=(0, 1), device="cpu")
    attack = foolbox.attacks.LinfPGD(rel_stepsize=ALPHA, steps=STEPS, random_start=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        _, x_adv, _ = attack(model, digits.x, digits.y, epsilons=EPS)
    compare(our_accuracy, digits.accuracy(x_adv))


def test_pgd_matches_adversarial_robustness_toolbox(digits, our_accuracy):
    classification = pytest.importorskip("art.estimators.classification")
    evasion = pytest.importorskip("art.attacks.evasion")
    loss = torch.nn.CrossEntropyLoss()
    model = classification.PyTorchClassifier(
        digits.network,
        loss=loss,
        input_shape=(64,),
        nb_classes=10,
        clip_values=(0.0, 1.0),
        device_type="cpu",
    )
    attack = evasion.ProjectedGradientDescent(
        model,
        norm=np.inf,
        eps=EPS,
        eps_step=ALPHA * EPS,
        max_iter=STEPS,
        num_random_init=1,
        batch_size=ROWS,
        verbose=False,
    )
    x_adv = attack.generate(digits.x.numpy(), y=digits.y.numpy())
    compare(our_accuracy, digits.accuracy(torch.from_numpy(x_adv)))
