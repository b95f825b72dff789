"""Decisions about held-out labels: the Bayes action of the predictive, its expected and realised
loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import torch
from pydantic import Field, PositiveFloat, model_validator
from torch import Tensor

from components.contracts.predictive import GaussianMixture, PoissonMixture, Predictive, is_finite
from components.contracts.roles import BetweenZeroAndOne, StrictKeys
from components.errors import ConfigMismatchError
from components.metrics.regression import mean_over_rows, name_by_task
from components.posteriors.decisions import (
    AbsoluteLoss,
    CostMatrixLoss,
    Pinball,
    Squared,
    ToleranceLoss,
)
from components.problems.supervised import Supervised

LossName = Literal["costs", "squared", "absolute", "pinball", "tolerance"]


class DecisionKeys(StrictKeys, allow_inf_nan=False):
    """The run-level keys ``decision``: the loss that predictions of held-out labels must minimise.

    ``costs`` [A, C] is for class labels: cost[a][c] of action a if the class is c, with actions in
    the order of the classes, followed by further ones (such as referring a row to an expert).  The
    other losses are for real labels, in the units of the other scores.

    Raises:
        ValueError: the cost matrix has rows of different lengths, or fewer actions than classes.
    """

    loss: LossName
    costs: Annotated[list[list[float]], Field(min_length=2)]
    level: BetweenZeroAndOne
    radius: PositiveFloat

    @model_validator(mode="after")
    def _check_costs(self) -> DecisionKeys:
        widths = {len(row) for row in self.costs}
        if len(widths) > 1 or not 2 <= max(widths) <= len(self.costs):
            raise ValueError(
                "costs: must have a row for each action, at least one for each class, and a column "
                f"for each class, not {self.costs}"
            )
        return self

    @property
    def is_of_classes(self) -> bool:
        return self.loss == "costs"


@dataclass(frozen=True)
class Decided:
    """Actions [B, T], plain actions (most probable class, predictive mean) and losses of both."""

    action: Tensor
    expected: Tensor  # posterior expected loss of the action
    realised: Tensor  # loss of the action at the label
    plain: Tensor  # loss of the plain action at the label


def decide(keys: DecisionKeys, predictive: Predictive, y: Tensor) -> Decided:
    """Bayes actions a* = argmin_a E[L(a, y) | x] at B inputs and their losses, [B, T] each.

    Raises:
        ConfigMismatchError: counts are predicted.

    Source: Bardenet (2021), eqs. (2.1) and (2.4), Figure 2.1."""
    if isinstance(predictive, PoissonMixture):
        raise ConfigMismatchError(
            "decision: losses of predicted counts are not available; use model.link=probit, or "
            "remove decision"
        )
    if not isinstance(predictive, GaussianMixture):
        costs = CostMatrixLoss(torch.tensor(keys.costs, dtype=torch.float64, device=y.device))
        chosen = costs.act(predictive)
        y = y.clamp_min(0)
        return Decided(
            chosen,
            costs.expected_loss(chosen, predictive),
            costs(chosen, y),
            costs(predictive.guess, y),
        )
    loss: Squared | AbsoluteLoss | Pinball | ToleranceLoss
    if keys.loss == "pinball":
        loss = Pinball(keys.level)
    elif keys.loss == "tolerance":
        loss = ToleranceLoss(keys.radius)
    else:
        loss = Squared() if keys.loss == "squared" else AbsoluteLoss()
    action = loss.act(predictive)
    return Decided(
        action,
        loss.expected_loss(action, predictive),
        loss(action, y),
        loss(predictive.mean, y),
    )


def scores(
    keys: DecisionKeys, predictive: Predictive, y: Tensor, mask: Tensor, task_names: list[str]
) -> dict[str, float]:
    """Mean losses over the observed labels; y, mask [B, T].

    decision_loss: realised loss of the Bayes action.  decision_expected_loss: its expectation under
    the predictive, lower than the former if the predictive is overconfident.  decision_loss_plain:
    realised loss of the most probable class or the predictive mean.  Labels without a finite
    prediction are omitted."""
    decided = decide(keys, predictive, torch.where(mask, y, 0))
    named = {
        "decision_loss": decided.realised,
        "decision_expected_loss": decided.expected,
        "decision_loss_plain": decided.plain,
    }
    mask = mask & is_finite(predictive)
    by_task = {name: mean_over_rows(value.double(), mask) for name, value in named.items()}
    return name_by_task(by_task, mask, task_names)


def add_decision(problem: Supervised, keys: DecisionKeys) -> Supervised:
    """The problem with a loss for decisions about its test labels.

    Raises:
        ConfigMismatchError: the cost matrix has a different number of classes."""
    columns = len(keys.costs[0])
    if keys.is_of_classes and columns != problem.n_classes:
        raise ConfigMismatchError(
            f"decision.costs: {columns} columns, but {problem.name} has {problem.n_classes} classes; "
            f"give one column for each of {', '.join(problem.classes)}"
        )
    return replace(problem, decision=partial(scores, keys))
