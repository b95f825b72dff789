"""Effect of each regressor on a series, per standard deviation and per unit."""

from __future__ import annotations

from torch import Tensor

from components.contracts.posteriors import Selects
from components.figures.style import BLUE, Figures, new_figure
from components.maths.particles.order_statistics import quantiles
from components.metrics.structural.coefficients import CENTRAL

MOST = 40  # columns drawn, the largest effects first


def coefficients(effects: dict[str, Tensor], posterior: Selects) -> Figures:
    """Mean and central 95 % interval of the effect of one standard deviation of each column on y.

    Columns that are not standardised show the effect of one unit.  The labels on the right are the
    effects of one unit of the column, ``effects`` [S] each.  A single draw has no interval.
    """
    if not effects:
        return {}
    units = posterior.units
    names = sorted(effects, key=lambda name: abs(float(effects[name].mean()) * units[name]))[-MOST:]
    figure, (axis,) = new_figure(1, 1, width=7.0, height=0.9 + 0.26 * len(names))
    labels = []
    for place, name in enumerate(names):
        effect = effects[name].cpu()
        mean = float(effect.mean())
        text = f"{mean:.4g}"
        axis.plot(mean * units[name], place, "o", ms=5, color=BLUE)
        if len(effect) > 1:
            low, high = (float(value) for value in quantiles(effect.view(1, -1, 1), CENTRAL))
            axis.plot([low * units[name], high * units[name]], [place, place], color=BLUE, lw=1.5)
            text += f" ({low:.4g} to {high:.4g})"
        labels.append(text)
    axis.axvline(0, color="0.35", lw=0.8)
    standard = any(units[name] != 1 for name in names)
    axis.set_xlabel(
        f"added to y, in its units, by one {'standard deviation' if standard else 'unit'}"
    )
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(-0.6, len(names) - 0.4)
    right = axis.twinx()
    right.set_ylim(axis.get_ylim())
    right.set_yticks(range(len(names)), labels)
    right.tick_params(length=0)
    right.grid(False)
    interval = ", central 95 %" if any(len(effects[name]) > 1 for name in names) else ""
    right.set_title(f"right: by a unit of the column{interval}", fontsize=9, loc="right")
    axis.set_title("Effect of each column", fontsize=9, loc="left")
    return {"coefficients": figure}
