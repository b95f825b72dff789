"""b² of draws: 1/n for n independent draws, and literal values for weighted draws."""

import math

import pytest
import torch

from components.metrics.reference_moments import ReferenceMoments, squared_biases
from components.posteriors.draws import Draws

MEAN = torch.tensor([1.0, -2.0], dtype=torch.float64)
SD = torch.tensor([0.5, 3.0], dtype=torch.float64)
SECOND = MEAN.square() + SD.square()


def to_draws(values, log_weights=None):
    names = [str(i) for i in range(values.shape[2])]
    return Draws(values, values[:, 0], names, log_weights=log_weights)


EXACT = ReferenceMoments(MEAN, SECOND, None, None, None)


def test_variance_of_the_square_equals_that_of_a_gaussian():
    reference = (
        MEAN + SD * torch.randn(1, 400_000, 2, generator=torch.Generator().manual_seed(0)).double()
    )
    sampled = ReferenceMoments(MEAN, SECOND, None, None, reference).variances()
    assert torch.allclose(EXACT.variances(), sampled, rtol=0.02)


def test_independent_draws_have_bias_one_over_n():
    generator = torch.Generator().manual_seed(1)
    n = 50
    each = torch.stack(
        [
            squared_biases(
                to_draws(MEAN + SD * torch.randn(1, n, 2, generator=generator).double()), EXACT
            )
            for _ in range(2000)
        ]
    )
    error = each.std(0) / math.sqrt(len(each))
    assert ((each.mean(0) - 1 / n).abs() < 4 * error).all()


def test_weights_change_the_biases():
    values = torch.tensor([[[0.0], [1.0], [4.0]]], dtype=torch.float64)
    log_weights = torch.tensor([[0.2, 0.3, 0.5]], dtype=torch.float64).log()
    reference = ReferenceMoments(
        torch.tensor([2.0]).double(), torch.tensor([5.0]).double(), None, None, None
    )
    b2 = squared_biases(to_draws(values, log_weights=log_weights), reference)
    # Ê[θ] = 2.3, Ê[θ²] = 8.3; Var[θ] = 1, Var[θ²] = 2 + 16
    assert b2.flatten().tolist() == pytest.approx([0.3**2, 3.3**2 / 18])


def test_constant_parameter_has_no_score():
    reference = ReferenceMoments(torch.ones(1), torch.ones(1), None, None, None)
    assert squared_biases(to_draws(torch.ones(1, 3, 1)), reference).isnan().all()


def test_fourth_moments_determine_the_variance_of_the_square():
    fourth = torch.tensor([20.0, 400.0], dtype=torch.float64)
    reference = EXACT._replace(fourth_moment=fourth)
    assert torch.allclose(reference.variances()[1], fourth - SECOND.square())
