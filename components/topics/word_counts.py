"""Texts as counts of their words: text messages, film reviews."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.text.mail_files import MailFile, Offline
from components.datasets.text.review_files import REVIEWS, reviews
from components.datasets.text.sms_spam import SmsSpam, message_texts, words_of
from components.registry import register
from components.topics.corpus import Corpus
from components.topics.counted_corpus import CountingKeys, Documents, build_corpus


@register("dataset", "word_counts")
class WordCounts(Dataset[Corpus], CountingKeys):
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

    kind = "unlabelled"
    values = "count"
    corpus: Literal["sms_spam", "reviews"]
    simulated: bool
    offline: Offline

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
        return build_corpus(documents, self, name, rng, setting)
