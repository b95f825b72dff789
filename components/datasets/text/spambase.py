"""E-mails as sets of words: UCI spambase, or a simulated corpus of its shape."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.checksums import numbers
from components.datasets.text.mail_files import MailDataset, held_out, make_word_problem
from components.problems.supervised import Supervised
from components.registry import register

MAILS = 4_601
WORDS = 54
SPAM = 1_813  # emails, words (or characters) that are searched, and spam emails
TOPICS = 4  # of each class in the simulated corpus
# x [4601, 54] in {0, 1}, y [4601]: 1 for spam
Mails = tuple[NDArray[np.float64], NDArray[np.int64]]


@functools.lru_cache(maxsize=1)
def _read(path: Path) -> Mails:
    rows = numbers(path)
    words = rows[:, :WORDS]
    spam = rows[:, -1]  # without the three lengths of runs of capitals
    return (words > 0).astype(float), spam.astype(int)


@functools.lru_cache(maxsize=1)
def simulated_mails() -> Mails:
    """A fixed simulated corpus with the same numbers of emails, words and spam as spambase.

    The corpus does not depend on the seed of a run.  Every email has one of four topics of
    its class, and contains word j with a probability that depends only on the topic, so words are
    dependent given the class; some words are rare, some almost determine the class.
    """
    rng = np.random.default_rng([*b"spam-sim"])
    y = (np.arange(MAILS) < SPAM).astype(int)
    common = rng.normal(-1.8, 0.9, WORDS)  # log odds of a word in any email
    tilt = rng.normal(0.0, 1.1, WORDS)  # towards spam (+) or non-spam
    topics = rng.normal(0.0, 0.9, (2, TOPICS, WORDS))
    logits = common + np.array([-0.5, 0.5])[:, None, None] * tilt + topics  # [2, TOPICS, WORDS]
    p = 1 / (1 + np.exp(-logits[y, rng.integers(TOPICS, size=MAILS)]))
    return (rng.random((MAILS, WORDS)) < p).astype(float), y


@register("dataset", "spambase")
class Spambase(MailDataset):
    """4,601 e-mails, 39.4 % of them spam, each as the presence (1) or absence (0) of 54 words.

    Class 1 is spam.  Inputs are binary: attacks change words, and gradient attacks are
    rejected.  Repeated hold-out: every replicate holds out ``test_share`` of its own random
    permutation and trains on the others, or on the first ``n_train`` of them, so that
    training sets of different sizes are nested.  If the file is unavailable, a simulated corpus of
    the same size, named ``spam-sim``, replaces it with a ``SimulatedDataWarning`` warning, unless
    ``offline`` is error.  x [N, 54], y [N, 1].

    Raises:
        DataUnavailableError: the file is unavailable.
        DamagedFileError: the numbers do not match their checksum.

    Source: Hopkins, Reeber, Forman and Suermondt (1999), UCI repository; Gallego (2021),
    section 3.2.2.
    """

    corpus = "spam-sim"
    text = "classification/spambase.data"
    packed = "classification/spambase.data.gz"

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        name, files = self.locate(setting)
        words, spam = _read(*files) if files else simulated_mails()
        x = torch.from_numpy(words)
        y = torch.from_numpy(spam)
        rows = held_out(len(x), self.test_share, self.n_train, rng.data)
        return make_word_problem(name, x, y, rows, self.batch_size, setting)
