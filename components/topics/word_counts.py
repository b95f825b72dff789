"""Texts as counts of their words: text messages, film reviews."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveInt

from components.contracts.problems import Kind, Values
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.text.mail_files import MailFile, Offline
from components.datasets.text.review_files import REVIEWS, reviews
from components.datasets.text.sms_spam import SmsSpam, message_texts, words_of
from components.registry import register
from components.topics.corpus import Corpus
from components.topics.counted_corpus import CountingKeys, Documents, StopWords, build_corpus


@register("dataset", "word_counts")
class WordCounts(Dataset[Corpus]):
    """Texts as word counts: the SMS Spam Collection, or the polarity dataset of reviews.

    Words are runs of two or more letters or digits, in lower case.  The vocabulary comes
    only from the training documents: the ``n_words`` most frequent of the words that occur
    in at least ``min_documents`` and in at most ``max_share`` of them, without stop words.
    Words of held-out documents outside the vocabulary are skipped; their number is
    reported.  A document without remaining words is kept, empty.  Repeated hold-out as in
    ``sms_spam``.  Where the file is unavailable a simulated corpus, ``sms-sim`` or
    ``reviews-sim``, takes its place with a ``SimulatedDataWarning`` warning, unless ``offline`` is
    error.

    Raises:
        DataUnavailableError: the file cannot be had.
        DamagedFileError: the checksum of the file does not fit.

    Source: Almeida, Gómez Hidalgo and Yamakami (2011), section 3; Pang and Lee (2004),
    section 3 (reviews).
    """

    kind: ClassVar[Kind] = "unlabelled"
    values: ClassVar[Values | None] = "count"
    corpus: Literal["sms_spam", "reviews"]
    n_words: PositiveInt | None
    min_documents: PositiveInt
    max_share: Annotated[float, Field(gt=0, le=1)]
    stop_words: StopWords
    test_share: Annotated[float, Field(gt=0, lt=1)]
    n_train: PositiveInt | None
    simulated: bool
    offline: Offline
    batch_size: PositiveInt | None

    @property
    def file(self) -> MailFile:
        if self.corpus == "sms_spam":
            return MailFile(
                "sms_spam",
                SmsSpam.stand_in,
                SmsSpam.text,
                SmsSpam.packed,
                self.simulated,
                self.offline,
            )
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
        keys = CountingKeys(
            n_words=self.n_words,
            min_documents=self.min_documents,
            max_share=self.max_share,
            stop_words=self.stop_words,
            test_share=self.test_share,
            n_train=self.n_train,
            batch_size=self.batch_size,
        )
        return build_corpus(documents, keys, name, rng, setting)
