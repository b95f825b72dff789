"""∫ g(y)^a dy of a density on the line, by quadrature."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

NODES = 64  # of Gauss–Legendre between two breaks
# of the trapezoidal rule in the tails, which converges exponentially for smooth g, even if
# heavy-tailed
STEP = 0.04
ENDS = 4.5


def log_power_integral(
    log_density: Callable[[Tensor], Tensor],
    power: float,
    breaks: Sequence[float],
    scales: Sequence[float],
) -> float:
    """log ∫ g(z)^a dz over the whole line, for log g [n] -> [n] in float64.

    ``breaks`` are the points, increasing, at which g or one of its derivatives jumps; a smooth
    density needs one, its centre.  ``scales`` [2] are the lengths over which g changes below the
    first break and above the last.  Between two breaks the nodes are Gauss–Legendre nodes; a tail
    is mapped onto the line by z = b ∓ s exp(½π sinh τ), with equal steps in τ.

    Source: Takahasi and Mori (1974).

    Raises:
        ValueError: breaks do not increase, or a scale or power is not positive.
    """
    b = list(breaks)
    if not b or sorted(set(b)) != b or min(scales) <= 0 or power <= 0:
        raise ValueError(
            f"breaks {b} must increase, and scales {list(scales)} and power {power} must be positive"
        )
    x, w = np.polynomial.legendre.leggauss(NODES)
    nodes = torch.from_numpy((x + 1) / 2)
    weights = torch.from_numpy(w / 2)  # on (0, 1)
    parts = []
    for low, high in itertools.pairwise(b):
        parts.append(
            torch.log((high - low) * weights) + power * log_density(low + (high - low) * nodes)
        )
    tau = torch.arange(-ENDS, ENDS + STEP / 2, STEP, dtype=torch.float64)
    log_u = math.pi / 2 * tau.sinh()
    jacobian = log_u + torch.log(STEP * math.pi / 2 * tau.cosh())  # log of h du/dτ
    for edge, side, scale in ((b[0], -1, scales[0]), (b[-1], 1, scales[1])):
        parts.append(
            math.log(scale) + jacobian + power * log_density(edge + side * scale * log_u.exp())
        )
    return float(torch.logsumexp(torch.cat(parts), 0))
