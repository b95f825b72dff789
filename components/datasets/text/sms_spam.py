"""Text messages as sets of words: the SMS Spam Collection, or a simulated corpus of its size."""

from __future__ import annotations

import functools
import gzip
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from pydantic import PositiveInt
from torch import Tensor

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.text.mail_files import MailDataset, held_out, make_word_problem
from components.datasets.text.vocabulary import most_common_words
from components.problems.supervised import Supervised
from components.registry import register

MESSAGES = 5_574
SPAM = 747
# Simulated corpus: topics per class, distinct words, and words per message.
TOPICS = 4
SIMULATED_WORDS = 800
LENGTH = 14
# the words of every message in order, and 1 for spam
Texts = tuple[list[list[str]], list[int]]
# the distinct words of every message, and 1 for spam
Messages = tuple[list[frozenset[str]], list[int]]


def words_of(text: str) -> list[str]:
    """The words of a text in order: runs of two or more letters or digits, in lower case."""
    return re.findall(r"\w\w+", text.lower())


def message_texts(*file: Path) -> Texts:
    """The messages of a file, or simulated messages without a file."""
    return _read(*file) if file else _simulate()


def messages(*file: Path) -> Messages:
    """The messages as sets of words."""
    texts, spam = message_texts(*file)
    return [frozenset(words) for words in texts], spam


@functools.lru_cache(maxsize=1)
def _read(path: Path) -> Texts:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    # quotes are ordinary characters
    lines = [line.split("\t", 1) for line in content.decode("utf-8").split("\n") if line]
    return [words_of(text) for _, text in lines], [int(label == "spam") for label, _ in lines]


@functools.lru_cache(maxsize=1)
def _simulate() -> Texts:
    """A fixed simulated corpus with the same numbers of messages and spam as the collection.

    The corpus does not depend on the seed of a run.  Every message has one of four topics
    of its class and draws its words from that topic's frequencies, which follow Zipf's law
    and are tilted by class and topic.
    """
    rng = np.random.default_rng([*b"sms-sim"])
    y = (np.arange(MESSAGES) < SPAM).astype(int)
    tilt = rng.normal(0.0, 1.0, SIMULATED_WORDS)  # towards spam (+) or non-spam
    topics = rng.normal(0.0, 0.7, (2, TOPICS, SIMULATED_WORDS))
    logits = (
        -np.log(np.arange(SIMULATED_WORDS) + 5.0)
        + np.array([-0.5, 0.5])[:, None, None] * tilt
        + topics
    )
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)  # [2, TOPICS, words]
    lengths = 1 + rng.poisson(LENGTH - 1, MESSAGES)
    about = rng.integers(TOPICS, size=MESSAGES)
    word_ids = [
        rng.choice(SIMULATED_WORDS, n, p=p[c, t]) for n, c, t in zip(lengths, y, about, strict=True)
    ]
    return [[f"word{j}" for j in js] for js in word_ids], y.tolist()


def most_frequent(messages: Sequence[frozenset[str]], n: int) -> list[str]:
    """The n words contained in most messages, with ties in alphabetical order; fewer if there are
    fewer words."""
    return most_common_words(Counter(word for message in messages for word in message), n)


def bag(messages: Sequence[frozenset[str]], vocabulary: Sequence[str]) -> Tensor:
    """x_ij = 1 if message i contains word j, else 0, [N, D]."""
    column = {word: j for j, word in enumerate(vocabulary)}
    x = torch.zeros(len(messages), len(vocabulary))
    indices = [
        (i, column[word])
        for i, message in enumerate(messages)
        for word in message
        if word in column
    ]
    if indices:
        x[tuple(torch.tensor(indices).T)] = 1.0
    return x


@register("dataset", "sms_spam")
class SmsSpam(MailDataset):
    """5,574 text messages, 13.4 % of them spam, each as presence (1) or absence (0) of words.

    Class 1 is spam.  The words are the ``n_words`` words that occur in most training
    messages: test messages are not used, so every replicate has its own vocabulary.  Inputs
    are binary: attacks change words, and gradient attacks are rejected.  Repeated hold-out as in
    ``spambase``, with nested training sets; 403 messages are copies of others, and copies may occur
    in both training and test rows.  If the file is unavailable, a simulated corpus of the same
    size, named ``sms-sim``, replaces it with a ``SimulatedDataWarning`` warning, unless ``offline``
    is error.  x [N, D], y [N, 1].

    Raises:
        DataUnavailableError: the file is unavailable.
        DamagedFileError: the file does not match its checksum.

    Source: Almeida, Gómez Hidalgo and Yamakami (2011), section 3.
    """

    corpus = "sms-sim"
    text = "text/sms_spam_collection.tsv"
    packed = "text/sms_spam_collection.tsv.gz"
    n_words: PositiveInt

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        name, files = self.locate(setting)
        texts, spam = messages(*files)
        rows = held_out(len(texts), self.test_share, self.n_train, rng.data)
        vocabulary = most_frequent([texts[i] for i in rows[0].tolist()], self.n_words)
        return make_word_problem(
            name, bag(texts, vocabulary), torch.tensor(spam), rows, self.batch_size, setting
        )
