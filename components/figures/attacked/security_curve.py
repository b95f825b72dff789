"""Security evaluation curve: accuracy, attack success and uncertainty against attack strength
(Gallego Figs 2.6, 3.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.figures.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PALETTE,
    RED,
    Figure,
    legend_above,
    new_figure,
    separate_ticks,
)

if TYPE_CHECKING:
    import pandas as pd

MEMBERS = [PALETTE[i] for i in (0, 2, 3, 4, 5)]


def security_curve_figure(
    rows: pd.DataFrame, attacker: str, trusted: bool, n_labels: int
) -> Figure:
    """Left: accuracy under attack, under noise of the same size, and the worse of both by row; if
    applicable, accuracy of the undefended classifier that is attacked, and under each member of
    several attacks.  Right: NLPP and entropy under attack.  Each point uses ``n_labels`` test
    labels."""
    figure, (left_axis, right_axis) = new_figure(1, 2, height=3.5)
    eps = rows["eps"]
    members = [str(column) for column in rows if str(column).startswith("accuracy/")]
    for i, column in enumerate(members):
        left_axis.plot(
            eps,
            rows[column],
            ".-",
            color=MEMBERS[i % len(MEMBERS)],
            lw=1,
            label=column.removeprefix("accuracy/"),
        )
    left_axis.plot(
        eps,
        rows["accuracy"],
        "o-",
        color=RED,
        label=attacker.replace("_", " ") if members else attacker,
    )
    left_axis.plot(eps, rows["random_accuracy"], "s--", color=GREY, label="random noise")
    left_axis.plot(
        eps,
        rows["worst_case_accuracy"],
        ":",
        color=BLACK,
        label=f"worst case of {'all' if members else 'both'}, up to ε",
    )
    if "undefended_accuracy" in rows:
        left_axis.plot(
            eps,
            rows["undefended_accuracy"],
            "^-",
            color=BLUE,
            label=f"undefended, attacked by {attacker}",
        )
    left_axis.set(
        xlabel="attack strength ε",
        ylabel="accuracy",
        ylim=(-0.02, 1.02),
        title=f"Security evaluation curve, {n_labels:,} test labels",
    )
    legend_above(left_axis)
    right_axis.plot(eps, -rows["log_likelihood"], "o-", color=BLUE, label="NLPP of the true label")
    right_axis.plot(eps, rows["entropy"], "s-", color=GREEN, label="predictive entropy")
    right_axis.set(xlabel="attack strength ε", ylabel="nats", title="Uncertainty under attack")
    legend_above(right_axis)
    for axis in (left_axis, right_axis):
        axis.set_xticks(separate_ticks(eps))
    if not trusted:
        figure.suptitle("A sanity check failed: see the table attack_checks", color=RED)
    return figure
