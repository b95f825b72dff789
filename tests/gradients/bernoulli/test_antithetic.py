"""ARM and DisARM against an enumerated gradient, against each other, and where they are refused."""

from __future__ import annotations

import pytest
import torch
from configured import component
from contract.only import only
from small_bernoulli import binary_rows, enumerated_elbo, flat, holm_p, small_dvae, z_scores

from components.contracts.capabilities import BernoulliLayers
from components.contracts.problems import Rows
from runner.mistakes import ConfigError
from runner.run.rng import Streams

NAMES = pytest.mark.parametrize("name", ["arm", "disarm"])


@NAMES
@pytest.mark.parametrize("layers", [1, 2])
def test_unbiased(name, layers):
    batch = binary_rows(n=2).train
    module = small_dvae(binary_rows(n=2), layers)
    estimator = component("gradient", name, n_samples=1)
    assert estimator.unbiased
    z = z_scores(estimator, module, Rows(batch.x, 3.0), 100_000)
    assert holm_p(z) > 0.001, f"largest |z| {float(z.abs().max()):.1f}"


@NAMES
def test_the_bound_is_among_its_terms(name):
    problem = binary_rows(n=2)
    module = small_dvae(problem)
    stub = only(module, BernoulliLayers)  # it asks for nothing else
    estimator, rng = component("gradient", name, n_samples=20_000), Streams(0)
    gradients, terms, state = estimator.estimate(stub, problem.train, rng, estimator.init(stub, rng))
    assert state is None
    exact = float(enumerated_elbo(module, problem.train).detach())
    assert float(terms["elbo"]) == pytest.approx(exact, abs=0.08)
    assert [g.shape for g in gradients] == [p.shape for p in module.parameters()]


def by_layer(name: str, n_samples: int = 1) -> torch.Tensor:
    """Variances of 400 estimates, of every parameter of the guide."""
    problem = binary_rows(n=6)
    module, estimator, rng = small_dvae(problem), component("gradient", name, n_samples=n_samples), Streams(3)
    names = [key for key, _ in module.named_parameters()]
    draws = [estimator.estimate(module, problem.train, rng, None)[0] for _ in range(400)]
    guide = [[g for key, g in zip(names, draw, strict=True) if key.startswith("down")] for draw in draws]
    return torch.stack([flat(g) for g in guide]).var(0)


def test_disarm_varies_less_than_arm_and_samples_average():
    arm, disarm = by_layer("arm"), by_layer("disarm")
    assert float(disarm.sum()) < 0.9 * float(arm.sum())
    assert float(disarm.sum() / by_layer("disarm", 8).sum()) == pytest.approx(8, rel=0.35)


def test_disarm_is_the_mean_of_arm_given_the_pair():
    """E[½ − u | z, z̃] = ½ (z − z̃) σ(|α|), by quadrature over u."""
    arm, disarm = (component("gradient", name, n_samples=1) for name in ("arm", "disarm"))
    u = (torch.arange(200_000, dtype=torch.float64) + 0.5) / 200_000
    for alpha in (-1.7, -0.2, 0.4, 2.5):
        a = torch.full_like(u, alpha)
        z, other = (u < a.sigmoid()).double(), (1 - u < a.sigmoid()).double()
        for first, second in ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)):
            here = (z == first) & (other == second)
            if here.any():
                w = [part.weight(u, z, other, a)[here].mean() for part in (arm, disarm)]
                torch.testing.assert_close(w[0], w[1], rtol=0, atol=2e-5)


DVAE_DIGITS = ["+experiment=dvae_digits", "smoke=true"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["+experiment=vae_digits", "smoke=true", "inference.gradient=arm"],
            "inference.gradient=arm needs bernoulli_layers, which model=vae lacks; gradients that fit it: ",
        ),
        (
            [*DVAE_DIGITS, "inference.gradient=reparam"],
            "inference.gradient=reparam needs pathwise, which model=dvae lacks; gradients that fit it: arm, ",
        ),
        (
            [*DVAE_DIGITS, "dataset.binarised=none"],
            "model=dvae has no likelihood for the real values",
        ),
        ([*DVAE_DIGITS, "model.layers=3"], "model.layers=3"),
    ],
)
def test_mistakes_are_named(overrides, message, make_job):
    with pytest.raises(ConfigError) as caught:
        make_job(*overrides)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
