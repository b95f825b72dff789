"""A user's corpus and rows, for topics and mixtures."""

import pytest
import torch
from support.runs.configured import F64, component, double, generator, load
from torch.testing import assert_close

from components.errors import ConfigMismatchError, DataUnavailableError

LINES = ["Cats purr, cats sleep.", "Engines burn fuel;", "cats purr", "fuel burn engines"] * 5


def build_corpus(path, **keys):
    return load("texts", path=str(path), min_documents=1, max_share=1.0, **keys)[0]


def test_file_lines_equal_files_of_a_folder(tmp_path):
    (tmp_path / "lines.txt").write_text("\n".join(LINES) + "\n\n")
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    for k, line in enumerate(LINES):
        (folder / ("below" if k > 9 else "") / f"{'b' if k <= 9 else 'z'}{k:02}.txt").write_text(
            line + "\n"
        )
    (folder / "notes.md").write_text("no document")
    of_lines = build_corpus(tmp_path / "lines.txt")
    of_files = build_corpus(folder)
    for corpus in (of_lines, of_files):
        assert (corpus.n, corpus.test.n_rows) == (15, 5)
        assert sorted(corpus.vocabulary) == ["burn", "cats", "engines", "fuel", "purr", "sleep"]
    counts = int(of_lines.train.counts.sum() + of_lines.test.counts.sum())
    assert counts == 5 * 12  # 4 + 3 + 2 + 3 words
    assert build_corpus(tmp_path / "lines.txt", document="line").n == 15


def test_name_changes_with_every_file(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for k in range(4):
        (folder / f"{k}.txt").write_text(LINES[k])
    dataset = component("dataset", "texts", path=str(folder))
    identity = dataset.identity(tmp_path, True)
    (folder / "3.txt").write_text("fuel")
    assert dataset.identity(tmp_path, True) != identity
    assert identity.startswith("texts-mine-")


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (
            "only one document",
            ConfigMismatchError,
            "1 documents with a word, but at least 2 are required; give a folder of texts or a file with",
        ),
        ("a\nb\n", ConfigMismatchError, "0 documents with a word"),
        ("cats\ndogs\n", ConfigMismatchError, "held-out documents of .* are empty"),
    ],
)
def test_invalid_corpora_are_refused(tmp_path, content, error, message):
    (tmp_path / "mine.txt").write_text(content)
    with pytest.raises(error, match=message):
        build_corpus(tmp_path / "mine.txt")


@pytest.mark.parametrize(
    ("line", "words", "fact"),
    [
        ("Cafe\u0301 año a\u0308pfel", ["año", "café", "äpfel"], {}),
        ("हिन्दी में\n", ["में", "हिन्दी"], {"documents without a word": "3, excluded"}),
        (
            "今天天气很好，我们去",
            ["今天天气很好", "我们去"],
            {
                "scripts without blanks": "36 letters in scripts without word boundaries; "
                "separate words by blanks with a segmenter"
            },
        ),
        (
            "7,red,apple",
            ["apple", "red"],
            {
                "a table": "cells separated by ',': names, numbers and labels count as words; remove them from the texts"
            },
        ),
    ],
)
def test_texts_of_other_scripts_and_tables_are_reported(tmp_path, line, words, fact):
    (tmp_path / "mine.txt").write_text(f"{line}\n" * 4, encoding="utf-8")
    corpus = build_corpus(tmp_path / "mine.txt")
    assert sorted(corpus.vocabulary) == sorted(words)
    assert corpus.about == fact


def test_words_in_most_documents_are_reported(tmp_path):
    (tmp_path / "mine.txt").write_text("the cat\nthe dog\nthe cow\nthe cat\n" * 2)
    corpus = load("texts", path=str(tmp_path / "mine.txt"), min_documents=1, stop_words="none")[0]
    assert corpus.about["very frequent words"] == "1, excluded by dataset.max_share: the"


def test_folder_without_texts_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        DataUnavailableError, match=r"dataset.path=.*empty: .* has no \*.txt file; choose another"
    ):
        build_corpus(tmp_path / "empty")
    with pytest.raises(
        DataUnavailableError, match="the file does not exist"
    ):  # a table is not a folder
        load("csv", path=str(tmp_path / "empty"))


def test_rows_without_labels_are_a_mixture_problem(tmp_path):
    rows = torch.randn(40, 2, generator=generator(0)).tolist()
    (tmp_path / "rows.csv").write_text(
        "a,b,part\n"
        + "".join(f"{a},{b},{'test' if k > 29 else 'train'}\n" for k, (a, b) in enumerate(rows))
    )
    path = str(tmp_path / "rows.csv")
    problem, _ = load("csv", path=path, targets=[], split="part")
    assert (problem.kind, problem.values, problem.n, problem.test.n_rows) == (
        "unlabelled",
        "real",
        30,
        10,
    )
    assert_close(problem.train.x.mean(0), torch.zeros(2, dtype=F64))
    raw, _ = load("csv", path=path, targets=[], split="part", standardise=False)
    assert_close(raw.test.x[0], double(rows[30]))
    dataset = component("dataset", "csv", path=path, targets=[])
    assert (dataset.problem_kind(), dataset.value_kind(), dataset.target_kind()) == (
        "unlabelled",
        "real",
        None,
    )
    labelled = component("dataset", "csv", path=path, targets=["a"])
    assert (labelled.problem_kind(), labelled.value_kind(), labelled.target_kind()) == (
        "supervised",
        None,
        "real",
    )
    with pytest.raises(
        ConfigMismatchError,
        match=r"dataset.targets=y: .*; .*; for rows without labels set",
    ):
        load("csv", path=path)
    with pytest.raises(ValueError, match=r"task: requires labels, but dataset.targets=\[\]"):
        component("dataset", "csv", path=path, targets=[], task="part")
