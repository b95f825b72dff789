"""Word counts of text messages or film reviews."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.stand_in import FileOrSimulationDataset, FilesOrStandIn
from components.datasets.text.review_files import REVIEWS, reviews
from components.datasets.text.sms_spam import SmsSpam, message_texts, words_of
from components.registry import register
from components.topics.corpus import Corpus
from components.topics.counted_corpus import CountingKeys, Documents, build_corpus


@register("dataset", "word_counts")
class WordCounts(FileOrSimulationDataset[Corpus], CountingKeys):
    """Texts as word counts: the SMS Spam Collection, or the polarity dataset of reviews.

    Words are runs of two or more letters or digits, in lower case.  The vocabulary comes
    only from the training documents: the ``n_words`` most frequent of the words that occur
    in at least ``min_documents`` and in at most ``max_share`` of them, without stop words.
    Words of held-out documents outside the vocabulary are skipped; their number is
    reported.  A document without remaining words is kept, empty.  Hold-out is repeated as in
    ``sms_spam``.  If the file is unavailable, a simulated corpus, ``sms-sim`` or ``reviews-sim``,
    replaces it with a ``SimulatedDataWarning``, unless ``offline`` is error.

    Raises:
        DataUnavailableError: the file is unavailable.
        DamagedFileError: the checksum of the file is wrong.

    Source: Almeida, Gómez Hidalgo and Yamakami (2011), section 3; Pang and Lee (2004),
    section 3 (reviews).
    """

    kind = "unlabelled"
    values = "count"
    stand_in = "a simulated corpus of the same size"
    corpus: Literal["sms_spam", "reviews"]

    def source(self) -> FilesOrStandIn:
        source = replace(super().source(), genuine=self.corpus)
        if self.corpus == "reviews":
            return replace(source, stand_in="reviews-sim")
        return replace(source, stand_in=SmsSpam.corpus, packed=SmsSpam.packed)

    def file(self) -> str:
        return SmsSpam.text if self.corpus == "sms_spam" else REVIEWS

    def load(self, rng: Rng, setting: Setting) -> Corpus:
        name, files = self.locate(setting)
        if self.corpus == "sms_spam":
            documents: Documents = message_texts(*files)[0]
        else:
            documents = [words_of(" ".join(text)) for text, *_ in reviews(*files)]
        return build_corpus(documents, self, name, rng, setting)
