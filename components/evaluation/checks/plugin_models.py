"""Examination of a plug-in's model before training: rows are predicted independently, and class
outputs are logits."""

from __future__ import annotations

import copy

import torch
from torch import nn

from components.contracts.capabilities import Elbo, LogJoint, Network, ThetaPredictive
from components.contracts.class_outputs import guess_output_kind
from components.contracts.predictive import Categorical, Predictive
from components.errors import ConfigMismatchError
from components.models.own.examination import check_rows, pick_spaced_rows
from components.problems.supervised import Supervised

DRAWS = 4  # number of parameter draws for the examination


def examine_model(model: object, problem: Supervised, where: str) -> None:
    """Check on a copy of a plug-in's classifier that it predicts rows independently, with logits.

    A model that cannot predict before training is not examined; the checks of the run examine its
    predictions afterwards.

    Raises:
        ConfigMismatchError: a prediction depends on other rows, inputs are changed, or the logits
        are probabilities."""
    if problem.target == "real":
        return
    x = pick_spaced_rows(problem.train.x)
    generator = torch.Generator(problem.train.x.device).manual_seed(0)
    try:
        probe = copy.deepcopy(model)
        with torch.no_grad():
            predictive = _answer(probe, x, where, generator)
    except ConfigMismatchError:
        raise
    except Exception:
        return
    if (
        isinstance(predictive, Categorical)
        and guess_output_kind(predictive.logits) == "sums to one"
    ):
        raise ConfigMismatchError(
            f"{where}: every row of its logits sums to one, like probabilities; pass their "
            f"logarithms to Categorical"
        )


def _answer(
    model: object, x: torch.Tensor, where: str, generator: torch.Generator
) -> Predictive | None:
    if isinstance(model, nn.Module) and isinstance(model, Network):
        model.train(False)
        check_rows(model, x, where)
        return model.output_predictive(model(x)[None])
    if isinstance(model, ThetaPredictive) and isinstance(model, LogJoint):
        return model.predictive(model.sample_prior(DRAWS, generator), x)
    return model.sample_predictive(x, DRAWS, generator) if isinstance(model, Elbo) else None
