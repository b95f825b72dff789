"""Texts as tokens: the vocabulary of the training texts, lengths, padding, folds, an archive of
IMDB, and a tokenizer."""

import pytest
import torch
from support.runs.archives import write_archive
from support.runs.configured import component, load, make_setting

from components.datasets.text import imdb
from components.datasets.text.imdb import read_imdb, words_of
from components.datasets.text.review_files import simulated_reviews
from components.datasets.text.token_rows import build_vocabulary, pad_rows, subwords, truncate_items
from components.errors import (
    ConfigMismatchError,
    DamagedFileError,
    DataUnavailableError,
)
from runner.execution.rng import Streams


def test_word_numbers_match_hand_count():
    texts = [("a", "b", "a"), ("c", "b", "a"), ("d",)]
    assert build_vocabulary(texts, None) == {"a": 2, "b": 3, "c": 4, "d": 5}
    assert build_vocabulary(texts, 2) == {"a": 2, "b": 3}
    assert pad_rows([[2, 3, 2], [], [5]], torch.float32).tolist() == [
        [2, 3, 2],
        [0, 0, 0],
        [5, 0, 0],
    ]
    assert (
        truncate_items("abcd", 2, "first"),
        truncate_items("abcd", 2, "last"),
        truncate_items("abcd", None, "last"),
    ) == ("ab", "cd", "abcd")


def test_rows_use_the_vocabulary_learnt_from_training():
    problem, _ = load("reviews", simulated=True, n_words=30, length=12, n_train=50, fold=3)
    train, labels, _ = zip(
        *(review for review in simulated_reviews() if review.fold != 3), strict=True
    )
    chosen = torch.randperm(1800, generator=Streams(0).data)[:50].tolist()
    number = build_vocabulary([train[i] for i in chosen], 30)
    for row, i in zip(problem.train.x.tolist(), chosen, strict=True):
        assert row == [number.get(word, 1) for word in train[i][-12:]]
    assert problem.train.y[:, 0].tolist() == [labels[i] for i in chosen]
    assert (problem.vocabulary, problem.domain, problem.name) == (32, "tokens", "reviews-sim")
    assert problem.test.x.shape == (200, 12)
    assert 1 in problem.test.x


def test_replicate_r_is_tested_on_fold_r():
    setting = make_setting(dtype=torch.float32)
    dataset = component("dataset", "reviews", simulated=True, length=20)
    by_replicate = dataset.load(Streams(0, replicate=4), setting)
    by_key = component("dataset", "reviews", simulated=True, length=20, fold=4).load(
        Streams(0, replicate=4), setting
    )
    assert torch.equal(by_replicate.test.x, by_key.test.x)
    assert by_replicate.test.y.sum() == 100
    with pytest.raises(ConfigMismatchError, match=r"replicates: .* 10 folds.*; lower replicates"):
        dataset.load(Streams(0, replicate=10), setting)
    with pytest.raises(ValueError, match=r"fold: .* 0 to 9, .*; lower dataset\.fold"):
        component("dataset", "reviews", fold=10)


def test_imdb_text_is_split_into_words():
    assert words_of("It's FINE!<br /><br />(10/10)") == (
        "it's",
        "fine",
        "!",
        "(",
        "10",
        "/",
        "10",
        ")",
    )


def test_archive_of_imdb_is_read_as_written_by_hand(tmp_path, monkeypatch):
    monkeypatch.setattr(imdb, "EACH", 2)
    path = tmp_path / "imdb.tar.gz"
    reviews = {
        "train/pos/10_9.txt": b"Good.",
        "train/pos/2_8.txt": b"Very good",
        "train/neg/0_1.txt": b"Bad",
        "train/neg/1_2.txt": b"So bad",
        "train/unsup/0_0.txt": b"Whatever",
        "test/pos/0_10.txt": b"Fine",
        "test/pos/1_7.txt": b"Nice",
        "test/neg/0_3.txt": b"Dull",
        "test/neg/1_1.txt": b"Poor",
        "train/urls_pos.txt": b"http://",
    }
    write_archive(path, reviews, "aclImdb/")
    train, test = read_imdb(path, True)
    assert train == [(("bad",), 0), (("so", "bad"), 0), (("very", "good"), 1), (("good", "."), 1)]
    assert test == [(("dull",), 0), (("poor",), 0), (("fine",), 1), (("nice",), 1)]
    assert read_imdb(path, False)[0][3] == (("Good.",), 1)
    monkeypatch.setattr(imdb, "EACH", 3)
    read_imdb.cache_clear()
    with pytest.raises(DamagedFileError, match=r"3 reviews .* train/neg, but it has 2"):
        read_imdb(path, True)


def test_stand_in_of_imdb_has_both_classes():
    problem, _ = load("imdb", simulated=True, n_train=40, n_test=10, length=15)
    assert len(problem.train.y) == 40
    assert problem.test.y[:, 0].tolist() == [0] * 5 + [1] * 5


def test_mismatched_tokenizer_is_refused(tmp_path):
    with pytest.raises(
        DataUnavailableError,
        match=r"dataset\.tokenizer: .*tokenizer\.json .*; copy the tokenizer",
    ):
        component("dataset", "reviews", simulated=True, tokenizer=str(tmp_path)).identity(
            tmp_path, True
        )


def test_tokenizer_pieces_become_numbers(tmp_path):
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"<s>": 0, "</s>": 1, "a": 2, "film": 3, "?": 4}, unk_token="?")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    numbers, size = subwords(str(tmp_path), None, "last")
    assert (numbers(("a", "fine", "film")), size) == ([1, 3, 5, 4, 2], 6)
    assert subwords(str(tmp_path), 3, "last")[0](("a", "film")) == [1, 4, 2]
    assert subwords(str(tmp_path), 3, "first")[0](("a", "film")) == [1, 3, 2]
