"""Collinear columns of a table."""

from __future__ import annotations

import torch
from torch import Tensor

TOLERANCE = 1e-3  # 1 − R² on the preceding columns, below which a column is reported
SHARE = 0.05  # smallest standardised weight of a column that is reported
MOST = 300  # columns; with more, only pairs are compared


def collinear(X: Tensor) -> dict[int, list[int]]:
    """Columns of X [N, D] with 1 − R² < TOLERANCE in a regression on the preceding columns.

    Return a mapping from each such column to the others.  Rows with a missing number, and constant
    columns, are left out.  With too few rows for a joint regression, a column is compared with one
    other column at a time.
    """
    rows = X[~X.isnan().any(1)].double()
    away = rows - rows.mean(0)
    size = away.norm(dim=0)
    varies = size > 1e-9 * rows.norm(dim=0)
    if len(rows) < 4:
        return {}
    unit = away / torch.where(varies, size, 1.0)
    R = unit.mT @ unit  # [D, D]
    jointly = len(rows) >= 2 * X.shape[1] and X.shape[1] <= MOST
    basis: list[int] = []
    out: dict[int, list[int]] = {}
    for j in varies.nonzero().flatten().tolist():
        if basis:
            others = torch.tensor(basis)
            weights = (
                torch.linalg.solve(R[others][:, others], R[others, j]) if jointly else R[others, j]
            )
            determined = float(weights @ R[others, j]) if jointly else float(weights.square().max())
            if 1 - determined < TOLERANCE:
                least = SHARE if jointly else float(weights.abs().max())
                out[j] = [basis[i] for i in (weights.abs() >= least).nonzero().flatten().tolist()]
                continue
        basis.append(j)
    return out


def name_collinear(X: Tensor, names: list[str], most: int = 5) -> str:
    """Each collinear column with the columns that determine it, on one line; "" if none."""
    pairs = collinear(X)
    descriptions = [
        f"{names[j]} with {', '.join(names[i] for i in others[:most])}"
        for j, others in list(pairs.items())[:most]
    ]
    more = f"; {len(pairs) - most} more" if len(pairs) > most else ""
    return "; ".join(descriptions) + more
