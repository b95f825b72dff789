"""Film reviews: numbers, folds and words of the archive, and its stand-in."""

from collections import Counter

from support.runs.archives import write_archive
from support.runs.real_files import find_or_skip

from components.datasets.text.review_files import REVIEWS, read, reviews, simulated_reviews


def test_archive_is_read_as_written_by_hand(tmp_path):
    path = tmp_path / "reviews.tar.gz"
    write_archive(
        path,
        {
            "txt_sentoken/pos/cv105_2.txt": b"a fine film .\n",
            "txt_sentoken/neg/cv999_1.txt": b"dull , \nvery dull",
            "poldata.README.2.0": b"no review",
        },
    )
    texts = read(path)
    assert texts == [(("dull", ",", "very", "dull"), 0, 9), (("a", "fine", "film", "."), 1, 1)]


def test_simulated_corpus_is_fixed_and_of_real_size():
    texts = reviews()
    assert texts is simulated_reviews()
    check_size(texts)


def check_size(count):
    assert (len(count), sum(review.label for review in count)) == (2_000, 1_000)
    assert Counter(review.fold for review in count) == dict.fromkeys(range(10), 200)


def test_genuine_archive_is_read():
    texts = reviews(*find_or_skip(REVIEWS))
    check_size(texts)
    assert len({word for words, *_ in texts for word in words}) == 50_920
    assert texts[0].words[:4] == ("plot", ":", "two", "teen")
