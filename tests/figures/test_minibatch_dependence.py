"""Figure 4.1: coefficients of minibatches compared with exact slopes, and the underlying
gradients."""

import numpy as np
import pytest
import torch
from support.small.line_model import line_gaussian, line_rows

from components.figures.variational.minibatch_dependence import (
    linear_coefficients,
    minibatch_dependence,
)
from components.inference.variational.laboratory.frozen import Frozen
from runner.execution.rng import Streams


class Rows:
    """Two minibatches of the line."""

    def batches(self, kind, rng, start, stop):
        parts = [torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5])]
        return ((k, line_rows().part(parts[k], 2.0)) for k in range(start, stop))


def test_coefficients_are_slopes_of_linear_gradients():
    e = np.random.default_rng(0).normal(size=(2, 50))
    g = np.stack([3 + 2 * e[0], -1 - 0.5 * e[1]])
    c = linear_coefficients(e, g)
    assert c.by_batch == pytest.approx([2, -0.5])
    off = e - e.mean(1, keepdims=True)
    residual = [
        sum(np.var(g[b] - s * e[b]) for b in (0, 1))
        for s in (c.shared, c.shared + 1e-3, c.shared - 1e-3)
    ]
    assert residual[0] < min(residual[1:])
    assert c.shared == pytest.approx((off * g).sum() / (off**2).sum())


def test_gradients_are_linear_in_sorted_noise():
    """∂/∂m_1 of the line is linear in both coordinates of ε: −(N/B Σ_b θ_1 + …)."""
    module = line_gaussian(False, "shared")
    dependence = Frozen(module, Rows(), 0, Streams(0), False).dependence(40)
    e = np.array(dependence["noise"])
    assert (np.diff(e, axis=1) >= 0).all()
    c = linear_coefficients(e, np.array(dependence["gradient"]))
    # −(B N/B + 1)/N s_1 for the weight 1 of every row, and the second coordinate as a residual
    assert c.by_batch == pytest.approx([-0.7, -0.7], abs=0.3)
    figure = minibatch_dependence({"10": dependence})["minibatch_dependence"]
    assert [ax.get_title() for ax in figure.axes] == ["after 10 steps", ""]
    assert minibatch_dependence({}) == {}
