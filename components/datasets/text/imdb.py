"""The Large Movie Review Dataset, or a simulated corpus as a substitute."""

from __future__ import annotations

import functools
import re
import tarfile
from pathlib import Path
from typing import Annotated

from pydantic import Field

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.text.review_files import simulated_reviews
from components.datasets.text.token_rows import LabelledText, Text, TokenRows
from components.errors import DamagedFileError
from components.problems.supervised import Supervised
from components.registry import register

ARCHIVE = "imdb/aclImdb_v1.tar.gz"
EACH = 12_500  # reviews per class in each split
BREAK = re.compile(r"<br\s*/?>")
Split = list[LabelledText]  # 1: positive


def words_of(text: str) -> Text:
    """Words (including apostrophes) and punctuation, without HTML line breaks: "It's fine!<br />"
    -> it's, fine, !"""
    plain = BREAK.sub(" ", text).lower()
    return tuple(re.findall(r"\w+(?:'\w+)*|[^\w\s]", plain))


@functools.lru_cache(maxsize=2)
def read_imdb(path: Path, whole_words: bool) -> tuple[Split, Split]:
    """Training and test reviews in the order of their numbers, negative ones first.

    If ``whole_words`` is False, reviews keep their original text and are split only at spaces, for
    a tokenizer.

    Raises:
        DamagedFileError: the archive contains another number of reviews.
    """
    reviews_by_kind: dict[tuple[str, str], list[tuple[int, Text]]] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            *_, split, kind, name = ("", "", *Path(member.name).parts)
            content = (
                archive.extractfile(member)
                if name.endswith(".txt") and kind in ("neg", "pos")
                else None
            )
            if content is not None:
                text = content.read().decode("utf-8")
                words = words_of(text) if whole_words else tuple(BREAK.sub(" ", text).split())
                reviews_by_kind.setdefault((split, kind), []).append(
                    (int(name.split("_")[0]), words)
                )

    def half(split: str) -> Split:
        texts: Split = []
        for label, kind in enumerate(("neg", "pos")):
            rows = sorted(reviews_by_kind.get((split, kind), []))
            if len(rows) != EACH:
                raise DamagedFileError(
                    f"{path}: {EACH:,} reviews are expected in {split}/{kind}, but it has {len(rows):,}"
                )
            texts += [(words, label) for _, words in rows]
        return texts

    return half("train"), half("test")


@functools.lru_cache(maxsize=1)
def simulated_imdb() -> tuple[Split, Split]:
    """The 2,000 simulated reviews of ``reviews``, half for training and half for testing."""
    train = [(words, label) for words, label, fold in simulated_reviews() if fold < 5]
    test = [(words, label) for words, label, fold in simulated_reviews() if fold >= 5]
    return train, test


@register("dataset", "imdb")
class Imdb(TokenRows):
    """IMDB: 25,000 training and 25,000 test film reviews as rows of tokens.

    Half of the reviews are positive (class 1).  Words are in lower case, punctuation marks
    count as words, and line breaks are left out; the thesis does not specify this preprocessing.
    Tokens are numbered as in ``reviews``; the vocabulary comes from the training reviews.
    ``n_train`` of these are drawn at random, and the ``n_test`` test reviews are the first of each
    class.  If the archive is unavailable, a simulated corpus (1,000 and 1,000), named ``imdb-sim``,
    replaces it with a ``SimulatedDataWarning`` warning, unless ``offline`` is error.  x [N, L]
    integers, y [N, 1].

    Raises:
        DataUnavailableError: the archive is unavailable.
        DamagedFileError: the archive does not match its checksum.

    Source: Maas et al. (2011), section 4.3; Gallego (2021), section 1.3.4.
    """

    stand_in = "a simulated corpus of 2,000 reviews"
    n_test: Annotated[int, Field(ge=2, le=2 * EACH)] | None

    def file(self) -> str:
        return ARCHIVE

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        name, files = self.locate(setting)
        train, test = read_imdb(*files, self.tokenizer is None) if files else simulated_imdb()
        each = len(test) // 2 if self.n_test is None else self.n_test // 2
        by_class = [[text for text in test if text[1] == label] for label in (0, 1)]
        return self.problem(name, train, by_class[0][:each] + by_class[1][:each], rng, setting)
