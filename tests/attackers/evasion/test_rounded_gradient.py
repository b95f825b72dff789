"""Attack gradients in bfloat16 come from a rounded copy of the victim; success is judged by the
original."""

import dataclasses
import warnings

import pytest
import torch
from support.runs.configured import component, generator
from support.small.network_victims import build_network_victims
from support.small.small_problems import classes, fit_mlp
from support.small.small_victims import Softmax

from components.attackers.attacked import Attacked
from components.attackers.evasion import loop
from components.attackers.evasion.loop import Ascent, ascend
from components.contracts.predictive import Categorical
from components.errors import ConfigMismatchError, QuestionableConfigWarning
from runner.execution.rng import Streams


@pytest.fixture(scope="module")
def train_classifier():
    problem = classes(n=200, n_inputs=7, n_classes=3, dtype=torch.float32)
    return problem, fit_mlp(problem, [32, 16], 150, lr=0.02)[0]


def test_rounded_gradients_match_copy_in_format(train_classifier):
    problem, posterior = train_classifier
    x = problem.test.x
    y = problem.test.y
    exact, rounded = (Attacked(posterior).round_gradient(p) for p in ("full", "bfloat16"))
    first, other = (v.input_gradient(x, y, generator()) for v in (exact, rounded))
    assert other.dtype == x.dtype
    assert not torch.equal(first, other)
    # bfloat16 keeps 8 binary digits: sums of a few dozen products are accurate to a few per cent of
    # the largest slope.
    assert float((first - other).abs().max() / first.abs().max()) < 0.05
    assert (first.sign() == other.sign()).double().mean() > 0.95
    assert rounded.posterior is posterior  # unchanged


@pytest.mark.parametrize("target", [None, 1])
def test_rounded_gradient_never_decides_success(train_classifier, target):
    """A copy that reports success for every row stops only rows that the victim itself
    misclassifies, and none without an evaluation."""
    problem, posterior = train_classifier
    x = problem.test.x
    y = problem.test.y
    aim = target is None

    class Liar:
        """Victim that reports success for every row, with the original gradient."""

        def predict(self, z, g):
            f = posterior.predict(z.to(x.dtype), g).logits
            liked = (y[: len(z)] + 1) % 3 if aim else torch.full_like(y[: len(z)], target)
            lie = torch.zeros_like(f).scatter_(-1, liked[None, ..., None], 100.0)
            return Categorical(f - f.detach() + lie)

    victim = dataclasses.replace(Attacked(posterior, None), shadow=Liar(), precision="bfloat16")
    labels = y if aim else torch.full_like(y, target)
    reply = victim.answer(x, labels, generator(), aim=aim)
    assert torch.equal(reply.broken, Attacked(posterior).broken(x, labels, generator()))


def test_rounded_attack_is_as_strong(train_classifier):
    problem, posterior = train_classifier
    x = problem.test.x
    y = problem.test.y
    victim = Attacked(posterior)
    remaining = {}
    for precision in ("full", "bfloat16"):
        for restarts in (1, 3):
            settings = Ascent(
                "linf", 20, 0.125, random_start=True, restarts=restarts, precision=precision
            )
            x_adv = ascend(victim, x, y, generator(1), 0.2, settings)
            assert (x_adv - x).abs().max() <= 0.2 + 1e-6
            remaining[precision, restarts] = float(
                (~victim.broken(x_adv, y, generator())).double().mean()
            )
    for restarts in (1, 3):
        assert 0 < remaining["full", restarts] < 1
        assert abs(remaining["full", restarts] - remaining["bfloat16", restarts]) <= 0.02


def test_only_networks_are_copied_to_format():
    problem = classes(n=40, n_inputs=7, n_classes=4, dtype=torch.float32)
    x = problem.test.x
    y = problem.test.y
    for posterior, blocks in build_network_victims(classes(n=40, n_inputs=7, n_classes=4)):
        exact, ours = (
            Attacked(posterior)
            .round_gradient(precision)
            .input_gradient(x.double().repeat(blocks, 1), y.repeat(blocks, 1), generator())
            for precision in ("full", "bfloat16")
        )
        assert (ours - exact).norm() / exact.norm() < 0.05
    with pytest.raises(
        ConfigMismatchError,
        match=r"attacker\.precision=bfloat16: .*; use attacker\.precision=full",
    ):
        Attacked(Softmax()).round_gradient("bfloat16")


@pytest.mark.parametrize("has", [True, False])
def test_cpu_without_format_support_warns(train_classifier, monkeypatch, has):
    problem, posterior = train_classifier
    monkeypatch.setattr(loop, "multiplies", lambda precision: has)
    attacker = component("attacker", "fgsm", precision="bfloat16")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        attacker.perturb(Attacked(posterior), problem.test.x, problem.test.y, Streams(0), 0.1)
    assert [w.category for w in caught] == ([] if has else [QuestionableConfigWarning])
    assert has or "use attacker.precision=full" in str(caught[0].message)
