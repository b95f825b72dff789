"""Film reviews: the archive's numbers, folds and words, and what takes its place."""

import io
import tarfile

from support.runs.real_files import find_or_skip

from components.datasets.text.review_files import REVIEWS, read, reviews, simulated_reviews


def test_an_archive_by_hand(tmp_path):
    path = tmp_path / "reviews.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in {
            "txt_sentoken/pos/cv105_2.txt": "a fine film .\n",
            "txt_sentoken/neg/cv999_1.txt": "dull , \nvery dull",
            "poldata.README.2.0": "no review",
        }.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    found = read(path)
    assert found.words == (("dull", ",", "very", "dull"), ("a", "fine", "film", "."))
    assert (found.labels, found.folds) == ((0, 1), (9, 1))


def test_the_simulated_corpus_is_fixed_and_of_the_real_size():
    found = reviews(None)
    assert found is simulated_reviews()
    assert (len(found.words), sum(found.labels)) == (2_000, 1_000)
    assert all(found.folds.count(fold) == 200 for fold in range(10))


def test_the_genuine_archive():
    found = reviews(*find_or_skip(REVIEWS))
    assert (
        len(found.words),
        sum(found.labels),
        len({w for words in found.words for w in words}),
    ) == (
        2_000,
        1_000,
        50_920,
    )
    assert found.words[0][:4] == ("plot", ":", "two", "teen")
    assert all(found.folds.count(fold) == 200 for fold in range(10))
