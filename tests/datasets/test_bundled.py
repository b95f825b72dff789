"""Data read from the files of installed packages are equal to the data that the packages load."""

from matplotlib import cbook, image
from numpy.testing import assert_array_equal
from sklearn.datasets import load_diabetes, load_digits, load_sample_images

from components.datasets.bundled import read_digits, read_photographs, read_table


def test_digits_equal_scikit_learn():
    ours = read_digits()
    theirs = load_digits()
    assert_array_equal(ours[0], theirs.data)
    assert_array_equal(ours[1], theirs.target)


def test_diabetes_equals_scikit_learn():
    theirs = load_diabetes(scaled=False)
    assert_array_equal(read_table("diabetes_data_raw.csv.gz"), theirs.data)
    assert_array_equal(read_table("diabetes_target.csv.gz"), theirs.target)


def test_photographs_equal_scikit_learn_and_matplotlib():
    hopper = image.imread(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))
    for ours, theirs in zip(
        read_photographs(), [*load_sample_images().images, hopper], strict=True
    ):
        assert_array_equal(ours, theirs)
