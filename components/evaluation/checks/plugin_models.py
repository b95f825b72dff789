"""Examination of a model of a plug-in before anything is learnt: each row by itself, and logits of
classes."""

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

DRAWS = 4  # of parameters under which a model is asked


def examine_model(model: object, problem: Supervised, where: str) -> None:
    """A classifier of a plug-in answers each row by itself, and with logits; a copy of it is asked.

    A model that is not ready to answer before it has learnt is not examined: checks of the run look
    at what it predicts then.

    Raises:
        ConfigMismatchError: a row is answered by others, its input is changed, or its logits
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
            f"{where}: every row of its logits sums to one, as probabilities do; give their logarithms to Categorical"
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
