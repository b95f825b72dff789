"""The least variance with polynomials of the noise as control variates, compared with closed
forms."""

import pytest
import torch
from support.runs.configured import generator, normal
from support.small.unlabelled_problems import ppca, real_rows
from support.targets.pathwise_models import Location, share_noise

from components.contracts.problems import Rows
from components.errors import ConfigMismatchError
from components.gradients.pathwise.bound import whole_gradient
from components.gradients.pathwise.controlled import control_variates
from components.inference.variational.laboratory.best_coefficients import best_ratios

ROWS = Rows(normal(generator(3), 5, 2), 3.0)


def find_ratios(order, n_samples=1, draws=4000, module=None, batch=ROWS):
    """∂ℓ/∂a = x − a − eˢ ε, ∂ℓ/∂s = (x − a) eˢ ε − e²ˢ ε² in the default module."""
    module = Location() if module is None else module
    return best_ratios(module, batch, n_samples, order, draws, generator(0))


def exact():
    """Sums over rows and dimensions: the total, and residuals with the best coefficients per row
    and for all rows."""
    v = (2 * Location().s).exp().detach()
    r = (ROWS.x - Location().a).detach()
    plain = float(5 * v.sum() + (r.square() * v + 2 * v**2).sum())
    variance = float(5 * (2 * v**2).sum())
    return variance / plain, (variance + float(((r - r.mean(0)).square() * v).sum())) / plain


@pytest.mark.parametrize("n_samples", [1, 3])
def test_best_linear_coefficients_leave_quadratic_part(n_samples):
    """S samples divide every variance by S, because w is a mean over samples like ĝ."""
    best = find_ratios(1, n_samples, draws=8000)
    by_row, free = exact()
    assert best.per_row == pytest.approx(by_row, rel=0.05)
    assert best.context_free == pytest.approx(free, rel=0.05)
    assert free > 1.2 * by_row


def test_polynomial_gradient_is_removed_entirely():
    """The result is exact, although the coefficients are fitted and evaluated on different
    draws."""
    best = find_ratios(2, draws=200)
    assert abs(best.per_row) < 1e-9
    assert best.context_free > 0.1


def test_rows_with_shared_noise_count_as_one():
    best = find_ratios(2, draws=200, module=share_noise(Location()))
    assert abs(best.context_free) < 1e-9
    assert best.per_row == pytest.approx(best.context_free, abs=1e-12)
    assert find_ratios(1, module=share_noise(Location())).per_row > 0.01


def test_guide_ratio_matches_least_squares():
    """In a module of 27 parameters, the gradient of each row is regressed literally on its own
    noise (rows are independent)."""
    problem = real_rows(n=3)
    module = ppca(problem, False)
    generator = torch.Generator().manual_seed(1)
    plain = 0.0
    residual_sum = 0.0
    for b in range(3):
        row = problem.train.part(torch.tensor([b]), 1.0)
        pairs = []
        for _ in range(1500):
            noise = module.draw_noise(row, 1, generator)
            g = torch.cat([v.flatten() for v in whole_gradient(module, row, noise)[0]])
            pairs.append((torch.cat([torch.ones(1), control_variates(noise, 1)[0]]), g))
        U, G = (torch.stack(values) for values in zip(*pairs, strict=True))
        plain += float(G.var(0).sum())
        residual_sum += float((G - U @ torch.linalg.lstsq(U, G).solution).var(0).sum())
    best = find_ratios(1, module=module, batch=problem.train, draws=4000)
    assert best.per_row == pytest.approx(residual_sum / plain, rel=0.15)
    assert best.per_row < best.context_free < 1.02


def test_ratio_is_not_overfitted():
    """The noise is unrelated to the gradient; in-sample, 8 coefficients fitted to 12 draws would
    leave a third of the variance."""
    module = Location()
    module.elbo_rows = lambda batch, noise: Location.elbo_rows(module, batch, noise[..., :2])
    module.noise_dim = 10
    draw = module.draw_noise
    module.draw_noise = lambda batch, n, g: torch.cat([draw(batch, n, g) for _ in range(5)], -1)
    assert find_ratios(1, draws=60, module=module).per_row > find_ratios(1).per_row


def test_too_few_draws_are_refused():
    with pytest.raises(ConfigMismatchError, match="use at least 80"):
        find_ratios(2, draws=8)
