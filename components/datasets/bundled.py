"""Small data sets from installed packages, read from their files because importing the packages
takes a second."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def locate_package(package: str) -> Path:
    """Folder of an installed package, without importing it."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None  # noqa: PT018
    return Path(spec.origin).parent


def read_table(name: str, delimiter: str | None = None) -> NDArray[np.float64]:
    """A table shipped with scikit-learn."""
    with gzip.open(locate_package("sklearn") / "datasets" / "data" / name, "rt") as text:
        return np.loadtxt(text, delimiter=delimiter)


def read_digits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """1,797 digits of 8 × 8 pixels with values 0 … 16, [1797, 64], and their classes.

    Source: Alpaydin and Kaynak (1998), as shipped by scikit-learn."""
    rows = read_table("digits.csv.gz", ",")
    return rows[:, :-1], rows[:, -1].astype(np.int64)


def read_photographs() -> list[NDArray[np.uint8]]:
    """Three colour photographs shipped with scikit-learn (a temple, a flower) and matplotlib (G.
    Hopper)."""
    from PIL import Image

    paths = sorted((locate_package("sklearn") / "datasets" / "images").glob("*.jpg"))
    hopper = locate_package("matplotlib") / "mpl-data" / "sample_data" / "grace_hopper.jpg"
    return [np.asarray(Image.open(path)) for path in (*paths, hopper)]
