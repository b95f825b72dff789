"""Predictions of a fitted model for new inputs, by the kind of its problem.

Monte-Carlo draws come from the stream ``evaluation`` of the run's seed and replicate, with a new
generator for each chunk of rows, so that the same rows have the same prediction in every process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from components.contracts.posteriors import Forecasts, HoldsTopics, Predicts, PredictsRows
from components.contracts.predictive import GaussianMixture, Predictive
from components.contracts.problems import Batch, Counts, Rows
from components.problems.input_columns import InputColumns
from components.problems.replicates.side_by_side import SupervisedReplicates
from components.problems.replicates.variants import Variants
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.series.sequence import Sequence
from components.topics.corpus import Corpus
from components.topics.topic_scores import mean_proportions
from runner.errors import ConfigError
from runner.python.export.answer_frames import frame_of_clusters, frame_of_predictive
from runner.python.export.new_rows import to_documents, to_inputs
from runner.python.export.restored import RestoredRun
from runner.python.export.series_answers import Probes, SeriesAnswers

PROBES = 32  # number of rows for the comparison of a rebuilt model


def predict_labels(
    run: RestoredRun, x: Any, replicate: int | None, variant: str | None, experiment: str
) -> Predictive:
    """Posterior predictive of labels at x [B, D] in the units of ``problem.test.x``.

    Raises:
        ConfigError: the posterior does not predict labels, x has a different number of inputs,
            or a replicate or variant must be selected.
    """
    problem, posterior, rng = run.one(replicate, variant)
    if not isinstance(problem, Supervised) or not isinstance(posterior, Predicts):
        raise ConfigError(
            f"predict: {experiment} is a {problem.kind} problem without labels to predict; use its posterior, "
            f"a {type(posterior).__name__}"
        )
    like = problem.test.x
    inputs = x if isinstance(x, Tensor) else torch.as_tensor(np.array(x))
    if inputs.ndim != 2 or inputs.shape[1] != problem.n_inputs:
        raise ConfigError(
            f"predict: x has shape {tuple(inputs.shape)}, but {experiment} requires rows of {problem.n_inputs}"
        )
    with torch.no_grad():
        return problem.predictive_at(posterior, inputs if inputs is like else inputs.to(like), rng)


def _columns(problem: Supervised | Unlabelled, train: Batch | Rows) -> InputColumns:
    """Columns of a problem; x1 … xD if the dataset has no names."""
    return problem.columns or InputColumns.numbered(train.x[0].numel())


@dataclass(frozen=True)
class LabelAnswers:
    """Predictions of labels of new rows."""

    kind: ClassVar[Literal["labels"]] = "labels"
    run: RestoredRun
    problem: Supervised  # problem of the first replicate if there are several

    @property
    def columns(self) -> InputColumns:
        return _columns(self.problem, self.problem.train)

    def ask(self, x: Tensor, replicate: int | None, variant: str | None) -> Predictive:
        return predict_labels(self.run, x, replicate, variant, "the model")

    def frame(
        self, rows: Any, where: str, replicate: int | None, variant: str | None
    ) -> pd.DataFrame:
        """Predictions in the units of the data."""
        split, _, _ = self.run.one(replicate, variant)
        assert isinstance(split, Supervised)
        # large values overflow in the dtype of the problem
        x = to_inputs(rows, _columns(split, split.train), where).to(split.test.x).nan_to_num()
        predictive = self.ask(x, replicate, variant)
        if split.y_mean is not None and split.y_std is not None:
            assert isinstance(predictive, GaussianMixture)
            predictive = predictive.rescale(split.y_mean, split.y_std)
        classes = split.classes if split.n_classes > 1 else []
        return frame_of_predictive(predictive, split.task_names, classes)

    def probes(self) -> Probes:
        """Predictions at test rows for each replicate and variant trained side by side."""
        posterior = self.run.posterior
        for r, member in enumerate(posterior if isinstance(posterior, tuple) else (posterior,)):
            replicate = r if isinstance(self.run.problem, SupervisedReplicates) else None
            for variant in member.of if isinstance(member, Variants) else [None]:
                split, _, _ = self.run.one(replicate, variant)
                assert isinstance(split, Supervised)
                yield split.test.x[:PROBES].clone(), replicate, variant


@dataclass(frozen=True)
class TopicAnswers:
    """Predictions of topics in new documents."""

    kind: ClassVar[Literal["topics"]] = "topics"
    problem: Corpus
    posterior: HoldsTopics

    @property
    def columns(self) -> InputColumns:
        return InputColumns.named(list(self.problem.vocabulary))

    def ask(self, documents: Counts) -> Tensor:
        """E[π | words] of each document [B, K], for the topics of the last draw."""
        with torch.no_grad():
            return mean_proportions(self.posterior, documents.to(self.problem.like.device))

    def frame(self, rows: Any, where: str, *_selection: object) -> pd.DataFrame:
        """One row per document: proportions of topics."""
        proportions = self.ask(to_documents(rows, self.problem.vocabulary, where))
        names = [f"topic {k + 1}" for k in range(proportions.shape[1])]
        return pd.DataFrame(proportions.cpu().tolist(), columns=names)

    def probes(self) -> Probes:
        """Predictions for test documents."""
        yield (self.problem.test.part(slice(0, PROBES), 1.0),)


@dataclass(frozen=True)
class ClusterAnswers:
    """Densities and clusters of new unlabelled rows."""

    kind: ClassVar[Literal["clusters"]] = "clusters"
    problem: Unlabelled
    posterior: PredictsRows[Rows]
    like: Rows  # training rows

    @property
    def columns(self) -> InputColumns:
        return _columns(self.problem, self.like)

    def ask(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """log p(x | training rows) [B] of rows x [B, D], and p(z = k | x) [B, K] or None for a model
        without clusters; computed in chunks."""
        rows = x.to(self.like.x).reshape(len(x), *self.like.x.shape[1:])
        parts = [Rows(part, 1.0) for part in torch.split(rows, self.problem.evaluation_chunk)]
        with torch.no_grad():
            density = torch.cat([self.posterior.log_predictive(part) for part in parts])
            clusters = [self.posterior.clusters(part) for part in parts]
        available = [part for part in clusters if part is not None]
        return density, torch.cat(available) if available else None

    def frame(self, rows: Any, where: str, *_selection: object) -> pd.DataFrame:
        """One row per input: cluster, probabilities and log density."""
        return frame_of_clusters(*self.ask(to_inputs(rows, self.columns, where)))

    def probes(self) -> Probes:
        """Predictions for test rows."""
        if isinstance(self.problem.test, Rows):
            yield (self.problem.test.x[:PROBES].flatten(1),)


Answers = LabelAnswers | SeriesAnswers | TopicAnswers | ClusterAnswers


def answers_of(run: RestoredRun) -> Answers | None:
    """Predictor of a posterior for new inputs, or None."""
    problem: object = run.problem
    posterior: object = run.posterior
    if isinstance(problem, SupervisedReplicates) and isinstance(posterior, tuple | list):
        problem = problem.splits[0]
        posterior = posterior[0]
    if isinstance(posterior, Variants):
        posterior = next(iter(posterior.of.values()), None)
    if isinstance(problem, Supervised) and isinstance(posterior, Predicts):
        return LabelAnswers(run, problem)
    if isinstance(problem, Sequence) and isinstance(posterior, Forecasts):
        return SeriesAnswers(run, problem, posterior)
    if isinstance(problem, Corpus) and isinstance(posterior, HoldsTopics):
        return TopicAnswers(problem, posterior)
    if isinstance(problem, Unlabelled) and isinstance(posterior, PredictsRows):
        train = problem.train
        return ClusterAnswers(problem, posterior, train) if isinstance(train, Rows) else None
    return None
