"""Documents as word counts, with one observed and one predicted half of each held-out document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from components.contracts.attackers import Attacker
from components.contracts.checks import NamedScores
from components.contracts.posteriors import Analyses, HoldsTopics
from components.contracts.problems import Counts, Kind, Values
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.problems.epochs import RowProblem, describe_batches
from components.topics import topic_scores as scores_of

if TYPE_CHECKING:
    import pandas as pd


def count_words(table: Tensor) -> Counts:
    """Convert a table of counts [B, V].

    Raises:
        ConfigMismatchError: a count is negative, or not an integer."""
    if not torch.equal(table, table.round()) or bool((table < 0).any()):
        wrong = float(table[(table != table.round()) | (table < 0)][0])
        raise ConfigMismatchError(
            f"dataset: counts of words must be nonnegative integers, but one is {wrong:g}; give counts, not shares"
        )
    rows, words = table.nonzero(as_tuple=True)
    return Counts(words, table[rows, words].long(), (table > 0).sum(1), 1.0)


def halves(documents: Counts, generator: torch.Generator) -> tuple[Counts, Counts]:
    """Split each document at random into ⌊L_i/2⌋ of its words and the remaining ones."""
    # pair of each word
    tokens = torch.arange(len(documents.words)).repeat_interleave(documents.counts.cpu())
    rows = documents.rows.cpu()[tokens]
    shuffled = torch.randperm(len(tokens), generator=generator)
    order = shuffled[rows[shuffled].sort(stable=True)[1]]  # random order within each document
    totals = documents.totals.cpu()
    first = totals.cumsum(0) - totals
    is_observed = torch.empty(len(tokens), dtype=torch.bool)
    is_observed[order] = torch.arange(len(tokens)) - first.repeat_interleave(totals) < (
        totals // 2
    ).repeat_interleave(totals)
    out = []
    for mask in (is_observed, ~is_observed):
        n = torch.bincount(tokens[mask], minlength=len(documents.words))
        is_present = n > 0
        lengths = torch.bincount(documents.rows.cpu()[is_present], minlength=documents.n_rows)
        device = documents.words.device
        out.append(
            Counts(
                documents.words[is_present.to(device)],
                n[is_present].to(device),
                lengths.to(device),
                1.0,
            )
        )
    return out[0], out[1]


@dataclass(frozen=True)
class Topics:
    """S sets of K topics, and the prior of topic proportions: a posterior, or the truth."""

    topics: Tensor  # [S, K, V]
    alpha: Tensor  # [K]


@dataclass
class Corpus(RowProblem[Counts]):
    """Training documents and held-out documents.

    One half of each held-out document is observed to predict the other half.
    """

    kind: ClassVar[Kind] = "unlabelled"
    values: ClassVar[Values] = "count"
    name: str
    train: Counts
    test: Counts
    vocabulary: Sequence[str]
    like: Tensor  # type and device of all numbers
    rng: torch.Generator  # stream for splits of held-out documents
    batch_size: int | None  # None means all documents, in order, at every step
    truth: Topics | None = None  # distribution of the documents
    image_shape: tuple[int, int] | None = None  # if words are pixels
    # each (problem, posterior, rng) -> {name: Figure}
    figures: list[Callable[..., dict]] = field(default_factory=list)
    left_out: int = 0  # words of held-out documents outside the vocabulary
    about: dict[str, str] = field(default_factory=dict)  # additional facts about the data
    replicates: int = 1
    attacker: Attacker | None = None  # always None: there are no labels to attack

    def __post_init__(self) -> None:
        """Raise ConfigMismatchError if there is no training or no held-out word."""
        if not len(self.vocabulary) or not self.train.n_rows:
            raise ConfigMismatchError(
                f"dataset: the vocabulary of {self.name} is empty; lower dataset.min_documents"
            )
        self.seen, self.held = halves(self.test, self.rng)
        if not len(self.held.words):
            raise ConfigMismatchError(
                f"dataset: the held-out documents of {self.name} are empty; hold out more documents"
            )

    @property
    def n_words(self) -> int:
        """Size V of the vocabulary."""
        return len(self.vocabulary)

    def without_truth(self) -> Corpus:
        """Return the corpus for methods, without true topics and held-out documents."""
        shown = copy(self)  # a new object would split documents again
        shown.truth = None
        shown.test = self.train
        shown.held = shown.seen
        return shown

    @property
    def device(self) -> torch.device:
        return self.train.words.device

    def held_out_fields(
        self, rows: tuple[Tensor, Tensor], held_out: Counts, generator: torch.Generator
    ) -> dict[str, Any]:
        return {"rng": generator}

    def score(self, posterior: HoldsTopics, rng: Rng) -> NamedScores:
        """Compute ``perplexity`` of the predicted halves given the observed ones (if they have
        words), and ``coherence`` of ten top words, mean over topics. With known true topics, also
        ``perplexity_truth`` and ``topic_distance`` after matching topics."""
        out: NamedScores = {}
        topics = scores_of.align_topics(posterior.topics)
        has_held_out = bool(self.held.counts.numel())
        if has_held_out:
            log_prob = scores_of.completion(posterior, self.seen, self.held)
            out["perplexity"] = scores_of.perplexity(log_prob, self.held)
        if self.truth is not None:
            if has_held_out:
                log_prob_truth = scores_of.completion(self.truth, self.seen, self.held)
                out["perplexity_truth"] = scores_of.perplexity(log_prob_truth, self.held)
            out["topic_distance"] = scores_of.distance(topics, self.truth.topics[0])
        if self.image_shape is None:
            out["coherence"] = float(scores_of.coherence(topics, self.train).mean())
        if isinstance(posterior, Analyses):
            out |= posterior.scores()
        return out

    def tables(self, posterior: HoldsTopics, rng: Rng) -> dict[str, pd.DataFrame]:
        """Return the table ``top_words``: ten words of each topic and their coherence; no table if
        words are pixels."""
        import pandas as pd

        if self.image_shape is not None:
            return {}
        topics = scores_of.align_topics(posterior.topics)
        coherence = scores_of.coherence(topics, self.train)
        rows = zip(
            coherence.tolist(), scores_of.format_topics(topics, self.vocabulary), strict=True
        )
        return {
            "top_words": pd.DataFrame(
                [{"topic": k + 1, "coherence": c, "words": w} for k, (c, w) in enumerate(rows)]
            )
        }

    def describe(self) -> dict[str, str]:
        """Facts for the terminal and the record."""
        empty = int((self.train.lengths == 0).sum())
        facts = {
            "data": self.name,
            "training documents": f"{self.n:,}{f', of which {empty:,} empty' if empty else ''}",
            "held-out documents": f"{self.test.n_rows:,}",
            "document length": f"{self.train.totals.double().mean():.1f} words on average, vocabulary {self.n_words:,}",
            "batches": describe_batches(self.n, self.batch_size),
        }
        facts |= self.about
        if self.left_out:
            facts["skipped words"] = (
                f"{self.left_out:,} of held-out documents, outside the vocabulary"
            )
        return facts
