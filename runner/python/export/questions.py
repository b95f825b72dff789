"""Answers of a fitted model to new inputs, by the kind of its problem.

Monte-Carlo draws of predictions come from the stream ``evaluation`` of the run's seed and
replicate, a fresh generator for each chunk of rows: the same rows have the same answer in every
process.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from components.contracts.posteriors import Forecasts, HoldsTopics, Predicts, PredictsRows
from components.contracts.predictive import Predictive
from components.contracts.problems import Counts, Rows
from components.contracts.roles import Problem
from components.contracts.sequences import FutureCovariates
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.replicates.variants import Variants
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.series.sequence import Sequence
from components.topics.corpus import Corpus
from components.topics.topic_scores import mean_proportions
from runner.errors import ConfigError
from runner.python.export.restored import RestoredRun

Answers = Literal["labels", "forecasts", "topics", "clusters"]


def answers_of(problem: Problem, posterior: object) -> Answers | None:
    """What a posterior can be asked for new inputs; None: nothing."""
    if isinstance(problem, SupervisedReplicates) and isinstance(posterior, tuple | list):
        return answers_of(problem.splits[0], posterior[0])
    if isinstance(posterior, Variants):
        posterior = next(iter(posterior.of.values()), None)
    if isinstance(problem, Supervised) and isinstance(posterior, Predicts):
        return "labels"
    if isinstance(problem, Sequence) and isinstance(posterior, Forecasts):
        return "forecasts"
    if isinstance(problem, Corpus) and isinstance(posterior, HoldsTopics):
        return "topics"
    if (
        isinstance(problem, Unlabelled)
        and isinstance(problem.train, Rows)
        and isinstance(posterior, PredictsRows)
    ):
        return "clusters"
    return None


def predict_labels(
    run: RestoredRun, x: Any, replicate: int | None, variant: str | None, experiment: str
) -> Predictive:
    """Posterior predictive of labels at x [B, D] in the units of ``problem.test.x``.

    Raises:
        ConfigError: it does not predict labels, x has another number of inputs, or no replicate
            or variant is selected.
    """
    import numpy as np

    problem, posterior, rng = run.one(replicate, variant)
    if not isinstance(problem, Supervised) or not isinstance(posterior, Predicts):
        raise ConfigError(
            f"predict: {experiment} is a {problem.kind} problem, which has no labels to predict; ask its posterior, "
            f"a {type(posterior).__name__}"
        )
    like = problem.test.x
    inputs = x if isinstance(x, Tensor) else torch.as_tensor(np.array(x))
    if inputs.ndim != 2 or inputs.shape[1] != problem.n_inputs:
        raise ConfigError(
            f"predict: x is {tuple(inputs.shape)}, and {experiment} has rows of {problem.n_inputs}"
        )
    with torch.no_grad():
        return problem.predictive_at(posterior, inputs if inputs is like else inputs.to(like), rng)


def forecast(run: RestoredRun, horizon: int, ahead: FutureCovariates | None) -> Predictive:
    """Forecast of y_{T+1} … y_{T+H} after the T training times [S, H, dy].

    Args:
        run: the posterior of a series.
        horizon: H.
        ahead: regressors and inputs of the H times; None: those of the dataset, or none.
    """
    problem, posterior = run.problem, run.posterior
    assert isinstance(problem, Sequence)
    assert isinstance(posterior, Forecasts)
    series = problem.series if ahead is None else problem.series._replace(ahead=ahead)
    with torch.no_grad():
        return posterior.forecast(series, horizon, run.rng.at("evaluation", 0))


def topic_proportions(run: RestoredRun, documents: Counts) -> Tensor:
    """E[π | words] of each document [B, K], in the topics of the posterior's last set."""
    problem, posterior = run.problem, run.posterior
    assert isinstance(problem, Corpus)
    assert isinstance(posterior, HoldsTopics)
    with torch.no_grad():
        return mean_proportions(posterior, documents.to(problem.like.device))


class RowAnswers(NamedTuple):
    """Predictive of rows without labels."""

    log_density: Tensor  # log p(x | training rows) [B]
    clusters: Tensor | None  # p(z = k | x) [B, K]; None: the model has no clusters


def describe_rows(run: RestoredRun, x: Tensor) -> RowAnswers:
    """Density and clusters of rows x [B, …], in chunks of the problem."""
    problem, posterior = run.problem, run.posterior
    assert isinstance(problem, Unlabelled)
    assert isinstance(posterior, PredictsRows)
    assert isinstance(problem.train, Rows)
    rows = x.to(problem.train.x).reshape(len(x), *problem.train.x.shape[1:])
    parts = [Rows(part, 1.0) for part in torch.split(rows, problem.evaluation_chunk)]
    with torch.no_grad():
        density = torch.cat([posterior.log_predictive(part) for part in parts])
        clusters = [posterior.clusters(part) for part in parts]
    known = [part for part in clusters if part is not None]
    return RowAnswers(density, torch.cat(known) if known else None)
