"""Text messages: words, vocabulary, and the simulated replacement of the collection."""

import gzip
import re

import pytest
import torch
from support.runs.configured import load_problem
from support.runs.real_files import FOLDER, find_or_skip

from components.datasets.text.sms_spam import SmsSpam, bag, messages, most_frequent, words_of
from runner.execution.rng import Streams


def load(seed=0, **changes):
    return load_problem("sms_spam", seed=seed, **{"simulated": True} | changes)


def test_words_match_hand_split():
    texts = [
        words_of(text) for text in ("Win a FREE prize, win £1000!", "free now?", "now or 2 late")
    ]
    assert texts[0] == ["win", "free", "prize", "win", "1000"]
    word_sets = [frozenset(words) for words in texts]
    # two messages each, then the alphabet
    assert most_frequent(word_sets, 3) == ["free", "now", "1000"]
    assert bag(word_sets, ["now", "free", "win"]).tolist() == [[0, 1, 1], [1, 1, 0], [1, 0, 0]]
    assert bag(word_sets, ["absent"]).tolist() == [[0], [0], [0]]


def test_simulated_corpus_has_real_size():
    problem = load()
    assert (problem.train.x.shape, problem.test.x.shape) == ((4180, 200), (1394, 200))
    assert (problem.bounds, problem.domain, problem.n_classes) == ((0.0, 1.0), "binary", 2)
    assert problem.train.x.unique().tolist() == [0.0, 1.0]
    assert sum(messages()[1]) == 747


def test_vocabulary_uses_only_training_messages():
    """Recomputed from the training rows: the columns are the words that most of them contain."""
    texts, _ = messages()
    order = torch.randperm(len(texts), generator=Streams(0).data)
    train = [texts[i] for i in order[1394 : 1394 + 50].tolist()]
    counts = {
        word: sum(word in message for message in train) for message in train for word in message
    }
    best = sorted(counts, key=lambda word: (-counts[word], word))[:30]
    problem = load(n_train=50, n_words=30)
    assert problem.train.x.sum(0).tolist() == [counts[word] for word in best]
    test = [texts[i] for i in order[:1394].tolist()]
    assert problem.test.x.sum(0).tolist() == [
        sum(word in message for message in test) for word in best
    ]
    leaky = sorted(
        counts, key=lambda word: (-sum(word in message for message in texts), word)
    )  # of all messages: another vocabulary
    assert set(leaky[:30]) != set(best)


def test_real_messages_have_the_words_of_the_file():
    (path,) = find_or_skip(SmsSpam.packed)
    problem = load(data_dir=FOLDER, simulated=False, n_words=100)
    assert problem.name == "sms_spam"
    lines = gzip.decompress(path.read_bytes()).decode().rstrip("\n").split("\n")
    assert len(lines) == len(problem.train.x) + len(problem.test.x) == 5574
    y = torch.cat([problem.train.y, problem.test.y])
    assert y.sum() == sum(line.startswith("spam\t") for line in lines) == 747
    most = max(
        sum(bool(re.search(rf"(?i)\b{word}\b", line)) for line in lines)
        for word in ("to", "you", "the")
    )
    total = problem.train.x.sum(0)[0] + problem.test.x.sum(0)[0]
    # the commonest word, with slightly different word boundaries
    assert float(total) == pytest.approx(most, rel=0.02)
