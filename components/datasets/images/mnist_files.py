"""Sets of images in MNIST's four idx files, and the digits that replace them if unavailable."""

from __future__ import annotations

import gzip
from collections.abc import Set
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, PositiveInt

from components.contracts.problems import Batch
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.bundled import read_digits
from components.datasets.labelled_rows import labelled_rows
from components.datasets.stand_in import FilesOrStandIn, StandInDataset
from components.figures.supervised.calibration import calibration
from components.problems.supervised import Supervised

Offline = Literal["simulate", "error", "always"]
Images = tuple[np.ndarray, np.ndarray]  # [n, 28, 28] uint8, class numbers [n]
SIDE = 28  # pixels
DIGITS = "scikit-learn's 8 × 8 digits"
HALF = 0.5  # threshold above which pixels of binarised images are 1
STAND_IN_TRAIN = 1_200  # of scikit-learn's 1,797 digits; the other 597 are the test split


def read_idx(path: Path) -> np.ndarray:
    """An array of bytes in the idx format: two zero bytes, type 8, rank, big-endian sizes,
    row-major values.

    Source: LeCun, Cortes and Burges (1998), the MNIST database."""
    content = gzip.decompress(path.read_bytes())
    rank = content[3]
    shape = np.frombuffer(content, ">i4", rank, 4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * rank).reshape(shape)


def enlarge(images: np.ndarray, side: int) -> np.ndarray:
    """Images [n, k, k] by linear interpolation between their pixels, with aligned corners, [n,
    side, side]."""
    k = images.shape[1]
    positions = np.arange(side) * ((k - 1) / (side - 1))
    first = np.minimum(positions.astype(int), k - 2)
    weights = 1 - (positions - first), positions - first  # weights of a pixel and of the next
    out = np.zeros((len(images), side, side))
    for i, row in enumerate(weights):
        for j, column in enumerate(weights):
            out += images[:, first + i][:, :, first + j] * row[:, None] * column
    return out


def enlarged_digits() -> tuple[Images, Images]:
    """scikit-learn's 8 × 8 digits, enlarged to 20 × 20 in the middle of 28 × 28, as in MNIST:
    training and test images."""
    pixels, classes = read_digits()
    large = enlarge(pixels.reshape(-1, 8, 8) / 16, 20).clip(0, 1)  # [1797, 20, 20]
    images = np.pad((255 * large).round().astype(np.uint8), ((0, 0), (4, 4), (4, 4)))
    cut = STAND_IN_TRAIN
    return (images[:cut], classes[:cut]), (images[cut:], classes[cut:])


class IdxFiles(FilesOrStandIn):
    """MNIST's four files: training images and labels, test images and labels."""

    def images(self, setting: Setting) -> tuple[Images, Images]:
        """Training and test images with their classes.

        Raises:
            DataUnavailableError: the files are unavailable and ``offline`` is error."""
        paths = self.locate(setting)
        if not paths:
            return enlarged_digits()
        images, labels, test_images, test_labels = map(read_idx, paths)
        return (images, labels), (test_images, test_labels)


def idx_files(folder: str, genuine: str, stand_in: str, offline: Offline) -> IdxFiles:
    """The idx files in a subfolder of the data folder (training images and labels, test images and
    labels) under the name ``genuine``, or else the digits under the name ``stand_in``."""
    paths = [
        f"{folder}/{split}-{kind}-ubyte.gz"
        for split in ("train", "t10k")
        for kind in ("images-idx3", "labels-idx1")
    ]
    return IdxFiles(
        tuple(paths), genuine, stand_in, DIGITS, simulated=offline == "always", offline=offline
    )


class ImageDataset(StandInDataset[Supervised]):
    """A set in MNIST's file format, in a folder of its name: ``n_train`` of the training images at
    random, and the first ``n_test`` test images."""

    kind = "supervised"
    label_kind = "classes"
    traits = {"images"}
    traits_where = {"binary_inputs": "binarised=threshold"}
    task: ClassVar[str]
    # training images, 1 to 60000, drawn at random; null: all
    n_train: Annotated[int, Field(ge=1, le=60_000)] | None
    # test images, 1 to 10000: the first of the test split
    n_test: Annotated[int, Field(ge=1, le=10_000)]
    offline: Offline
    batch_size: PositiveInt | None  # images per step, >= 1; null: the whole training set
    # true: pixels are 1 if brighter than ½, else 0
    binarised: Literal["none", "threshold"]

    def data_traits(self) -> Set[str]:
        return super().data_traits() | (
            {"binary_inputs"} if self.binarised == "threshold" else frozenset()
        )

    def source(self) -> IdxFiles:
        return idx_files(self.name, self.name, "digits-enlarged", self.offline)

    def identity(self, data_dir: Path, offline: bool) -> str:
        """``StandInDataset.identity`` and the type of binarisation."""
        name = super().identity(data_dir, offline)
        return name if self.binarised == "none" else f"{name}-{self.binarised}"

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        train, test = self.source().images(setting)
        train_rows = torch.randperm(len(train[1]), generator=rng.data)[: self.n_train].numpy()
        is_binary = self.binarised == "threshold"

        def batch(images: np.ndarray, labels: np.ndarray) -> Batch:
            x = setting.tensor(images).flatten(1) / 255
            x = (x > HALF).to(x) if is_binary else x
            return labelled_rows(x, torch.from_numpy(labels.astype(np.int64))[:, None], setting)

        return Supervised(
            name=self.identity(setting.data_dir, setting.offline),
            target="classes",
            train=batch(train[0][train_rows], train[1][train_rows]),
            test=batch(test[0][: self.n_test], test[1][: self.n_test]),
            batch_size=self.batch_size,
            n_classes=10,
            task_names=[self.task],
            bounds=(0.0, 1.0),
            image_shape=(SIDE, SIDE),
            domain="binary" if is_binary else "continuous",
            figures=[calibration],
        )
