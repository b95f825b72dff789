"""Figure of the ELBO of each start against passes over the documents."""

from __future__ import annotations

from torch import Tensor

from components.figures.style import Figures, legend_above, new_figure, series_style

LEFT_OUT = 2  # first passes, omitted because of their large increase of the bound


def bounds_figure(bounds: Tensor, fresh: int) -> Figures:
    """Draw ``elbo_by_start``: ELBO [T, R] of R starts, with a thick line for the best start, and
    the first pass with warm factors of documents.

    Empty with fewer than four passes."""
    if len(bounds) <= LEFT_OUT + 1:
        return {}

    figure, (ax,) = new_figure()
    best = int(bounds[-1].argmax())
    passes = range(LEFT_OUT + 1, len(bounds) + 1)
    for r, values in enumerate(bounds[LEFT_OUT:].T.cpu()):
        label = f"start {r + 1}{' (best)' if r == best else ''}"
        ax.plot(passes, values, lw=2.4 if r == best else 1.2, label=label, **series_style(r))
    if fresh < len(bounds):
        ax.axvline(fresh, color="#999999", ls=":", lw=1)
        ax.annotate(
            " warm", (fresh, 0.02), xycoords=("data", "axes fraction"), fontsize=8, color="#666666"
        )
    ax.set(xlabel="passes over the documents", ylabel="ELBO (nats)")
    ax.locator_params(axis="x", integer=True)
    legend_above(ax)
    return {"elbo_by_start": figure}
