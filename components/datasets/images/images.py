"""Sets of images without labels."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import model_validator

from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.bundled import read_digits
from components.datasets.images.mnist_files import IdxFiles, idx_files
from components.datasets.images.omniglot import OmniglotFiles
from components.datasets.images.unlabelled_images import (
    STATIC,
    Split,
    UnlabelledImages,
)
from components.registry import register

DIGITS = 1_797  # images of scikit-learn's digits, which have no test split
DIGITS_HELD_OUT = 500


@register("dataset", "images")
class Images(UnlabelledImages):
    """Images without labels, with pixels in [0, 1] or binarised, from one of four sets.

    The sets are 8 × 8 digits that need no download, MNIST, Fashion-MNIST and Omniglot.

    ``binarised`` selects the data.  threshold: a pixel is 1 if its brightness is above ½.
    dynamic: a pixel is 1 with probability equal to its brightness, redrawn each time a training
    image is used and drawn once for a held-out image.  static: drawn once for every image, the same
    in all runs.  none: the brightness itself, a real value.  The data's name includes the choice,
    because the bounds are not comparable.

    For the digits, a random permutation drawn from the seed holds out ``n_test`` (null:
    500) images; the other sets have a test split, and its first ``n_test`` images are held
    out.  ``n_train`` of the other images are drawn at random.  If the files of a set are
    unavailable, the digits enlarged to 28 × 28 replace them under the name digits-enlarged. Classes
    are kept only for the colours of one figure.  x [N, pixels].

    ``omniglot`` is the set of 24,345 + 8,070 images in 28 × 28 used in the literature,
    which the user copies into the data folder.  Its substitute, under its own name, is
    ``omniglot-partial``: eight of its alphabets, 4,840 images of 105 × 105 averaged over
    squares of 3.75 pixels, with drawers 1 to 15 of each character for training (3,630) and
    16 to 20 held out.  Its bounds are not comparable with published ones.

    Raises:
        ValueError: more images are requested than exist.
        DataUnavailableError: the files are unavailable and ``offline`` is error.
        DamagedFileError: a file has unexpected content.

    Source: Salakhutdinov and Murray (2008), section 5 (drawn binary pixels); Burda, Grosse
    and Salakhutdinov (2016), section 5 (redrawn; Omniglot in 28 × 28); Lake,
    Salakhutdinov and Tenenbaum (2015).
    """

    set: Literal["digits", "mnist", "fashion_mnist", "omniglot", "omniglot-partial"]

    @model_validator(mode="after")
    def _check_image_count(self) -> Images:
        available = DIGITS - (self.n_test or DIGITS_HELD_OUT)
        if self.set == "digits" and (self.n_train or 1) > available:
            raise ValueError(
                f"n_train: only {available} of the {DIGITS} digits are left; lower dataset.n_train or dataset.n_test"
            )
        return self

    def source(self) -> IdxFiles | OmniglotFiles | None:
        if self.set == "digits":
            return None
        if self.set == "omniglot" or self.set == "omniglot-partial":
            return OmniglotFiles(self.set, self.offline)
        return idx_files(self.set, self.set, "digits-enlarged", self.offline)

    def _split(self, rng: Rng, setting: Setting) -> Split:
        if self.set != "digits":
            return super()._split(rng, setting)
        pixels, classes = read_digits()
        x = self._binarise_if_static(
            torch.from_numpy(pixels / 16).view(-1, 8, 8), torch.Generator().manual_seed(STATIC)
        )
        y = torch.from_numpy(classes)
        n_test = self.n_test or DIGITS_HELD_OUT
        order = torch.randperm(len(x), generator=rng.data)
        train_rows = order[n_test:][: self.n_train]
        test_rows = order[:n_test]
        return x[train_rows], x[test_rows], y[test_rows]
