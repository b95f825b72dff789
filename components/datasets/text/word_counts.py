"""Texts as counts of their words: text messages, film reviews."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, PositiveInt

from components.contracts.problems import Counts, Kind, Values
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.text.mail_files import MailFile, Offline, held_out
from components.datasets.text.review_files import REVIEWS, reviews
from components.datasets.text.sms_spam import SmsSpam, message_texts, words_of
from components.datasets.text.vocabulary import most_counted
from components.figures.topics.topics import topic_words
from components.problems.corpus import Corpus
from components.registry import register

Documents = Sequence[Sequence[str]]


def vocabulary_of(
    documents: Documents, n: int | None, at_least: int, at_most: float, left_out: frozenset[str]
) -> list[str]:
    """Words that at least so many documents hold, and at most such a share of them, but for those left out; of these the n that
    are in most, of equals the first of the alphabet (None: all)."""
    counts = Counter(word for document in documents for word in set(document))
    limit = at_most * len(documents)
    kept = {word: n for word, n in counts.items() if at_least <= n <= limit and word not in left_out}
    return most_counted(kept, n)


def counts_of(documents: Documents, vocabulary: Sequence[str]) -> Counts:
    """How often each word of the vocabulary is in each document; other words are passed over."""
    number = {word: j for j, word in enumerate(vocabulary)}
    rows = [sorted(Counter(number[w] for w in document if w in number).items()) for document in documents]
    words, counts = (torch.tensor([pair[i] for row in rows for pair in row], dtype=torch.int64) for i in (0, 1))
    return Counts(words, counts, torch.tensor([len(row) for row in rows]), 1.0)


@register("dataset", "word_counts")
class WordCounts(Dataset[Corpus]):
    """Texts as counts of the words of their training documents: the SMS Spam Collection, or the polarity dataset of reviews.

    Words are runs of two or more letters or digits, in lower case.  The vocabulary is made of the training documents alone:
    those that at least ``min_documents`` and at most ``max_share`` of them hold, stop words apart, the ``n_words`` most
    frequent.  Words of held-out documents that are not in it are passed over; their number is told.  A document of which
    nothing is left stays, empty.  Repeated hold-out as in ``sms_spam``.  Where the file cannot be had a simulated corpus,
    ``sms-sim`` or ``reviews-sim``, takes its place with a ``SimulatedData`` warning, unless ``offline`` is error.

    Raises DataUnavailable (a file that cannot be had), DamagedFile (a file whose checksum does not fit).

    Source: Almeida, Gómez Hidalgo and Yamakami (2011), section 3; Pang and Lee (2004), section 3 (reviews)."""

    kind: ClassVar[Kind] = "unlabelled"
    values: ClassVar[Values | None] = "count"
    corpus: Literal["sms_spam", "reviews"]
    n_words: PositiveInt | None
    min_documents: PositiveInt
    max_share: Annotated[float, Field(gt=0, le=1)]
    stop_words: Literal["none", "english"]
    test_share: Annotated[float, Field(gt=0, lt=1)]
    n_train: PositiveInt | None
    simulated: bool
    offline: Offline
    batch_size: PositiveInt | None

    @property
    def file(self) -> MailFile:
        if self.corpus == "sms_spam":
            return MailFile("sms_spam", SmsSpam.stand_in, SmsSpam.text, SmsSpam.packed, self.simulated, self.offline)
        return MailFile("reviews", "reviews-sim", REVIEWS, REVIEWS, self.simulated, self.offline)

    def identity(self, data_dir: Path, offline: bool) -> str:
        return self.file.identity(data_dir, offline)

    def load(self, rng: Rng, setting: Setting) -> Corpus:
        name = self.identity(setting.data_dir, setting.offline)
        path = self.file.path(setting.data_dir, setting.offline)
        if self.corpus == "sms_spam":
            documents: Documents = message_texts(path)[0]
        else:
            documents = [words_of(" ".join(text)) for text in reviews(path).words]
        rows = held_out(len(documents), self.test_share, self.n_train, rng.data)
        train, test = ([documents[i] for i in part.tolist()] for part in rows)
        stop = frozenset[str]()
        if self.stop_words == "english":
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

            stop = frozenset(ENGLISH_STOP_WORDS)
        vocabulary = vocabulary_of(train, self.n_words, self.min_documents, self.max_share, stop)
        counts = [counts_of(part, vocabulary).to(setting.device) for part in (train, test)]
        known = {word for document in train for word in document}
        return Corpus(
            name=name,
            train=counts[0],
            test=counts[1],
            vocabulary=vocabulary,
            like=torch.zeros((), dtype=setting.dtype, device=setting.device),
            rng=rng.data,
            batch_size=self.batch_size,
            figures=[topic_words],
            left_out=sum(word not in known for document in test for word in document),
        )
