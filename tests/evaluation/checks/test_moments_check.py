"""Draws of a run, compared with the known moments of its target."""

import pytest
import torch
from support.runs.configured import F64, component, generator, load, normal

from components.contracts.checks import Check
from components.evaluation.checks.moments import moments_checks, remove_skewness
from components.posteriors.draws import Draws

NAME = "moments agree with the exact ones"
MIXED = [Check("R̂ is below 1.01", True, "")]


def independent_draws(scale=1.0, shift=0.0, power=1.0, replicates=1, n=500):
    generator = torch.Generator().manual_seed(0)
    z = normal(generator, 4 * replicates, n, 2)
    x = shift + scale * z.sign() * z.abs() ** power
    return Draws(x, x[:, 0], replicates=replicates)


@pytest.mark.parametrize(
    ("method", "draws", "passed", "detail"),
    [
        ("mala", {}, True, "largest |z| 1"),
        ("mala", {"replicates": 3}, True, ", 4.5 allowed"),
        # a Barker proposal without its Hastings correction
        ("mala", {"scale": 0.81}, False, "(second moment of x"),
        ("mala", {"shift": 0.2}, False, "(mean of x"),
        ("mala", {"shift": -0.2, "replicates": 3}, False, "replicate "),
        ("mala", {"power": 9.0, "n": 100}, None, "the draws are too skewed"),
        ("sgld", {"scale": 0.81}, None, "biased by its step size: largest error -0."),
        ("svgd", {"scale": 0.81}, None, "biased by the number of its particles: largest error"),
        ("cavi", {"scale": 0.81}, None, "biased by its family"),
    ],
)
def test_moments_are_compared_with_exact_ones(method, draws, passed, detail):
    problem, _ = load("gaussian")
    inference = component("inference", method)
    (check,) = moments_checks(problem, independent_draws(**draws), inference, MIXED)
    assert (check.name, check.passed) == (NAME, passed), check.detail
    assert detail in check.detail


def test_unmixed_chains_are_not_compared():
    problem, _ = load("gaussian")
    mala = component("inference", "mala")
    unmixed = [Check("R̂ is below 1.01", False, "")]
    (check,) = moments_checks(problem, independent_draws(0.5), mala, unmixed)
    assert check == Check(NAME, None, "the chains fail the check: R̂ is below 1.01")
    assert moments_checks(problem.without_truth(), independent_draws(), mala, MIXED) == []


def test_skewness_is_removed_from_z():
    """Means of 100 exponential draws are more than 3 standard errors too low with probability
    0.00135."""
    x = torch.empty(40_000, 100, dtype=F64)
    x.exponential_(generator=generator())
    sd, mean = torch.std_mean(x, 1)
    skew = ((x - mean[:, None]) ** 3).mean(1) / sd**3 / 10
    z = (mean - 1) / sd * 10
    below = [float((value < -3).double().mean()) for value in (z, remove_skewness(z, skew))]
    assert below[0] > 0.007
    assert below[1] < 0.004
