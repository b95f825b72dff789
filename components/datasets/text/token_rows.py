"""Texts as rows of tokens, with the vocabulary of the training texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import torch
from pydantic import PositiveInt, model_validator
from torch import Tensor

from components.contracts.problems import Batch
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.labelled_rows import labelled_rows
from components.datasets.stand_in import FileOrSimulationDataset
from components.datasets.text.vocabulary import most_common_words
from components.errors import ConfigMismatchError, DataUnavailableError
from components.figures.supervised.calibration import calibration
from components.problems.supervised import Supervised

NONE = 0
UNKNOWN = 1
FIRST = 2  # padding, an unknown word, and the most frequent word
Text = tuple[str, ...]
LabelledText = tuple[Text, int]
Keep = Literal["first", "last"]
T = TypeVar("T")


def build_vocabulary(texts: Iterable[Text], n: int | None) -> dict[str, int]:
    """Numbers of the n most frequent words (all if None), starting at 2, with ties in alphabetical
    order."""
    ordered = most_common_words(Counter(word for text in texts for word in text), n)
    return {word: FIRST + k for k, word in enumerate(ordered)}


def truncate_items(items: Sequence[T], length: int | None, keep: Keep) -> Sequence[T]:
    """At most ``length`` items (all if None), from the beginning or the end."""
    if length is None:
        return items
    return items[:length] if keep == "first" else items[-length:]


def pad_rows(rows: Sequence[Sequence[int]], dtype: torch.dtype) -> Tensor:
    """Rows of numbers as one tensor [N, longest], padded with 0."""
    out = torch.zeros(len(rows), max(1, *(len(row) for row in rows)), dtype=dtype)
    for i, row in enumerate(rows):
        out[i, : len(row)] = torch.tensor(row, dtype=dtype)
    return out


def subwords(
    folder: str, length: int | None, keep: Keep
) -> tuple[Callable[[Text], list[int]], int]:
    """Return a function from a text to token numbers, and the number of distinct tokens.

    The numbers are those of the tokenizer in a folder, plus one, between its begin and end marks.

    Raises:
        DataUnavailableError: the tokenizer does not exist, or its package is not installed.
    """
    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        raise DataUnavailableError(
            f"dataset.tokenizer: {path} does not exist; copy the tokenizer of the model's weights there"
        )
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise DataUnavailableError(
            "dataset.tokenizer: requires the package tokenizers; pip install 'bayes-runner[roberta]'"
        ) from None
    tokenizer = Tokenizer.from_file(str(path))
    begin, end = (tokenizer.token_to_id(mark) for mark in ("<s>", "</s>"))
    if begin is None or end is None:
        raise ConfigMismatchError(
            f"dataset.tokenizer: {path} lacks the special tokens <s> and </s>; choose RoBERTa's tokenizer"
        )

    def numbers(text: Text) -> list[int]:
        inner = tokenizer.encode(" ".join(text), add_special_tokens=False).ids
        inside = truncate_items(inner, None if length is None else length - 2, keep)
        return [1 + token for token in (begin, *inside, end)]

    return numbers, tokenizer.get_vocab_size() + 1


class TokenRows(FileOrSimulationDataset[Supervised]):
    """Keys of texts as rows of tokens; a subclass defines the texts and the test split."""

    kind = "supervised"
    label_kind = "binary"
    domain = "tokens"
    stand_in = "a simulated corpus"
    n_words: PositiveInt | None
    length: PositiveInt | None
    keep: Keep
    tokenizer: str | None
    n_train: PositiveInt | None
    batch_size: PositiveInt | None

    @model_validator(mode="after")
    def _check_marks_fit(self) -> TokenRows:
        if self.tokenizer is not None and self.length is not None and self.length < 3:
            raise ValueError(
                f"length: {self.length} leaves no space between the first and the last token of a text; use 3 or more"
            )
        return self

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``load`` uses; may download them.

        Raises:
            DataUnavailableError: the file is unavailable and ``offline`` is error, or the tokenizer
                does not exist."""
        if self.tokenizer is not None:
            subwords(self.tokenizer, self.length, self.keep)
        return super().identity(data_dir, offline)

    def numbering(self, texts: list[Text]) -> tuple[Callable[[Text], Sequence[int]], int]:
        """Return a function from a text to token numbers, and the number of distinct tokens.

        The numbers come from the words of the training texts, or from a tokenizer.
        """
        if self.tokenizer is not None:
            return subwords(self.tokenizer, self.length, self.keep)
        words = build_vocabulary(texts, self.n_words)

        def numbers(text: Text) -> list[int]:
            return [
                words.get(word, UNKNOWN) for word in truncate_items(text, self.length, self.keep)
            ]

        return numbers, FIRST + len(words)

    def problem(
        self,
        name: str,
        train: list[LabelledText],
        test: list[LabelledText],
        rng: Rng,
        setting: Setting,
    ) -> Supervised:
        """Problem with ``n_train`` random training texts, and test texts."""
        rows = torch.randperm(len(train), generator=rng.data)[: self.n_train].tolist()
        chosen = [train[i] for i in rows]
        numbers, size = self.numbering([text for text, _ in chosen])

        def batch(texts: list[LabelledText]) -> Batch:
            x = pad_rows([numbers(text) for text, _ in texts], setting.dtype)
            y = torch.tensor([label for _, label in texts])
            return labelled_rows(x, y[:, None], setting)

        return Supervised(
            name=name,
            target="binary",
            train=batch(chosen),
            test=batch(test),
            batch_size=self.batch_size,
            n_classes=2,
            task_names=["praise"],
            domain="tokens",
            vocabulary=size,
            figures=[calibration],
        )
