"""Sets of images without labels."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import torch
from pydantic import PositiveInt, model_validator
from torch import Tensor

from components.contracts.problems import Kind, Rows, Values
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.bundled import read_digits
from components.datasets.images.mnist_files import ImageFiles, Offline
from components.datasets.images.omniglot import OmniglotFiles
from components.figures.latent.latent_images import latent_plane, prior_samples, reconstructions
from components.problems.unlabelled import Unlabelled, drawn
from components.registry import register

DIGITS = 1_797  # images of scikit-learn's digits, which have no test split of their own
DIGITS_HELD_OUT = 500
TITLES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}  # the sets in MNIST's files
HALF = 0.5  # pixels above it are 1 where images are binarised at a threshold


@register("dataset", "images")
class Images(Dataset[Unlabelled]):
    """Images without labels, their pixels in [0, 1] or binarised: 8 × 8 digits that need no download, MNIST, Fashion-MNIST,
    Omniglot.

    ``binarised`` says what is learnt.  threshold: whether a pixel is brighter than ½.  dynamic: a pixel is 1 with the
    probability that is its brightness, drawn anew whenever a training image is shown and once for a held-out image.
    none: the brightness itself, a real value.  The data's name says which, for their bounds do not compare.

    Of the digits a random permutation drawn from the seed puts ``n_test`` (null: 500) aside; the other sets have a test
    split, whose first ``n_test`` images are held out.  ``n_train`` of the other images are drawn at random.  Where a set's
    files cannot be had, the digits enlarged to 28 × 28 stand in under the name digits-enlarged.  Classes are kept for the
    colours of one figure alone.  x [N, pixels].

    ``omniglot`` is the set of 24,345 + 8,070 images in 28 × 28 of the literature, to be put into the data folder by hand; in
    its place, under its own name, ``omniglot-partial``: eight of its alphabets, 4,840 images of 105 × 105 averaged over
    squares of 3.75 pixels, of which drawers 1 to 15 of each character are learnt from (3,630) and 16 to 20 are held out.
    Its bounds do not compare with published ones.

    Raises:
        ValueError: more images are asked for than the digits are.
        DataUnavailable: the files are not there and ``offline`` is error.
        DamagedFile: a file is there and is not what it should be.

    Source: Salakhutdinov and Murray (2008), section 5 (drawn binary pixels); Burda, Grosse and Salakhutdinov (2016),
    section 5 (drawn anew; Omniglot in 28 × 28); Lake, Salakhutdinov and Tenenbaum (2015)."""

    kind: ClassVar[Kind] = "unlabelled"
    set: Literal["digits", "mnist", "fashion_mnist", "omniglot", "omniglot-partial"]
    binarised: Literal["threshold", "dynamic", "none"]
    n_train: PositiveInt | None
    n_test: PositiveInt | None
    batch_size: PositiveInt | None
    importance_samples: PositiveInt
    offline: Offline

    @model_validator(mode="after")
    def _enough_images(self) -> Images:
        left = DIGITS - (self.n_test or DIGITS_HELD_OUT)
        if self.set == "digits" and (self.n_train or 1) > left:
            raise ValueError(
                f"n_train: {left} of the {DIGITS} digits are not held out; lower dataset.n_train or dataset.n_test"
            )
        return self

    def holds(self) -> Values:
        return "real" if self.binarised == "none" else "binary"

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``load`` would use; may download them.

        Raises:
            DataUnavailable: the files cannot be had and ``offline`` is error."""
        name = "digits" if self.set == "digits" else self._files.identity(data_dir, offline)
        return name if self.binarised == "none" else f"{name}-{self.binarised}"

    @property
    def _files(self) -> ImageFiles | OmniglotFiles:
        if self.set == "omniglot" or self.set == "omniglot-partial":
            return OmniglotFiles(self.set, self.offline)
        return ImageFiles(self.set, TITLES[self.set], self.set, "digits-enlarged", self.offline)

    def _split(self, rng: Rng, setting: Setting) -> tuple[Tensor, Tensor, Tensor]:
        """Training images and held-out images [n, H, W] in [0, 1], classes of the latter."""
        if self.set == "digits":
            pixels, classes = read_digits()
            x, y = torch.from_numpy(pixels / 16).view(-1, 8, 8), torch.from_numpy(classes)
            n_test = self.n_test or DIGITS_HELD_OUT
            order = torch.randperm(len(x), generator=rng.data)
            kept, held = order[n_test:][: self.n_train], order[:n_test]
            return x[kept], x[held], y[held]
        (train, _), (test, labels) = self._files.images(setting)
        kept = torch.randperm(len(train), generator=rng.data)[: self.n_train]
        white = 255 if train.dtype == "uint8" else 1
        images, held = torch.tensor(train)[kept] / white, torch.tensor(test)[: self.n_test] / white
        return images, held, torch.tensor(labels)[: self.n_test]

    def load(self, rng: Rng, setting: Setting) -> Unlabelled:
        train, test, classes = self._split(rng, setting)
        shape = tuple(train.shape[1:])
        if self.binarised == "threshold":
            train, test = train > HALF, test > HALF
        rows, held = (Rows(images.flatten(1).to(setting.dtype), 1.0) for images in (train, test))
        if self.binarised == "dynamic":
            held = drawn(held, rng.data)
        return Unlabelled(
            name=self.identity(setting.data_dir, setting.offline),
            values=self.holds(),
            train=Rows(rows.x.to(setting.device), 1.0),
            test=Rows(held.x.to(setting.device), 1.0),
            batch_size=self.batch_size,
            redrawn=self.binarised == "dynamic",
            image_shape=shape,
            test_classes=classes.long(),
            figures=[reconstructions, prior_samples, latent_plane],
            importance_samples=self.importance_samples,
        )
