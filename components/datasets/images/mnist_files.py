"""Sets of images in MNIST's four idx files, and the digits that stand in where they cannot be
had."""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, PositiveInt

from components.contracts.problems import Batch
from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.bundled import read_digits
from components.datasets.files import locate, why_unavailable
from components.errors import DataUnavailableError, SimulatedDataWarning
from components.figures.supervised.calibration import calibration
from components.problems.supervised import Supervised

Offline = Literal["simulate", "error", "always"]
Images = tuple[np.ndarray, np.ndarray]  # [n, 28, 28] uint8, class numbers [n]
SIDE = 28  # pixels
HALF = 0.5  # pixels above it are 1 where images are binarised at a threshold
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
    """Images [n, k, k] by linear interpolation between their pixels, corners to corners, [n, side,
    side]."""
    k = images.shape[1]
    positions = np.arange(side) * ((k - 1) / (side - 1))
    first = np.minimum(positions.astype(int), k - 2)
    weights = 1 - (positions - first), positions - first  # of a pixel and of the next
    out = np.zeros((len(images), side, side))
    for i, row in enumerate(weights):
        for j, column in enumerate(weights):
            out += images[:, first + i][:, :, first + j] * row[:, None] * column
    return out


def enlarged_digits() -> tuple[Images, Images]:
    """scikit-learn's 8 × 8 digits, enlarged to 20 × 20 in the middle of 28 × 28 as MNIST's are:
    training, test."""
    pixels, classes = read_digits()
    large = enlarge(pixels.reshape(-1, 8, 8) / 16, 20).clip(0, 1)  # [1797, 20, 20]
    images = np.pad((255 * large).round().astype(np.uint8), ((0, 0), (4, 4), (4, 4)))
    cut = STAND_IN_TRAIN
    return (images[:cut], classes[:cut]), (images[cut:], classes[cut:])


@dataclass(frozen=True)
class ImageFiles:
    """The idx files in ``folder`` of the data folder, under the name ``genuine``, or else the
    digits under ``stand_in``."""

    folder: str
    title: str  # common name of the set
    genuine: str
    stand_in: str
    offline: Offline

    @property
    def paths(self) -> tuple[str, ...]:
        """Training images and labels, test images and labels."""
        kinds = [
            f"{split}-{kind}-ubyte.gz"
            for split in ("train", "t10k")
            for kind in ("images-idx3", "labels-idx1")
        ]
        return tuple(f"{self.folder}/{kind}" for kind in kinds)

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``images`` would give; may download them.

        Raises:
            DataUnavailableError: the files cannot be had and ``offline`` is error."""
        if self.offline == "always":
            return self.stand_in
        why = why_unavailable(Path(data_dir), self.paths, offline)
        if why is not None and self.offline == "error":
            raise DataUnavailableError(
                f"{why}; or dataset.offline=simulate to use scikit-learn's digits"
            )
        return self.genuine if why is None else self.stand_in

    def images(self, setting: Setting, note: str = "") -> tuple[Images, Images]:
        """Training and test images with their classes; a stand-in that was not asked for is
        announced, with ``note``.

        Raises:
            DataUnavailableError: the files cannot be had and ``offline`` is error."""
        name = self.identity(setting.data_dir, setting.offline)
        if name == self.genuine:
            arrays = [
                read_idx(locate(setting.data_dir, path, setting.offline)) for path in self.paths
            ]
            return (arrays[0], arrays[1]), (arrays[2], arrays[3])
        if self.offline != "always":
            why = why_unavailable(setting.data_dir, self.paths, setting.offline)
            warnings.warn(
                f"OTHER DATA: {self.title} cannot be had, scikit-learn's 8 × 8 digits take its place{note}; everything "
                f"is recorded as {name} and compares with no published number ({why})",
                SimulatedDataWarning,
                stacklevel=1,  # from this file: the runner shows warnings of components
            )
        return enlarged_digits()

    def problem(
        self,
        rng: Rng,
        setting: Setting,
        n_train: int | None,
        n_test: int,
        batch_size: int | None,
        task: str,
    ) -> Supervised:
        """``n_train`` of the training images at random and the first ``n_test`` test images, pixels
        in [0, 1]. x [N, 784]"""
        train, test = self.images(setting)
        n_train = len(train[1]) if n_train is None else min(n_train, len(train[1]))
        train_rows = torch.randperm(len(train[1]), generator=rng.data)[:n_train].numpy()

        def batch(images: np.ndarray, labels: np.ndarray) -> Batch:
            x = (
                torch.tensor(
                    images.reshape(len(images), SIDE * SIDE),
                    device=setting.device,
                    dtype=setting.dtype,
                )
                / 255
            )
            y = torch.from_numpy(labels.astype(np.int64)).to(setting.device)[:, None]
            return Batch(x, y, torch.ones_like(y, dtype=torch.bool), 1.0)

        return Supervised(
            name=self.identity(setting.data_dir, setting.offline),
            target="classes",
            train=batch(train[0][train_rows], train[1][train_rows]),
            test=batch(test[0][:n_test], test[1][:n_test]),
            batch_size=batch_size,
            n_classes=10,
            task_names=[task],
            bounds=(0.0, 1.0),
            image_shape=(SIDE, SIDE),
            figures=[calibration],
        )


class ImageDataset(Dataset):
    """A set in MNIST's files, in the folder of its own name: ``n_train`` of the training images at
    random, the first ``n_test`` of the test images."""

    kind = "supervised"
    target = "classes"
    traits = {"images"}
    traits_where = {"binary_inputs": "binarised=threshold"}
    title: ClassVar[str]  # common name of the set
    task: ClassVar[str]
    # training images, 1 to 60000, drawn at random; null: all
    n_train: Annotated[int, Field(ge=1, le=60_000)] | None
    # test images, 1 to 10000: the first of the test split
    n_test: Annotated[int, Field(ge=1, le=10_000)]
    offline: Offline
    batch_size: PositiveInt | None  # images per step, >= 1; null: the whole training set
    # pixels as they are, or 1 where brighter than ½ and else 0
    binarised: Literal["none", "threshold"]

    def data_traits(self) -> Set[str]:
        return super().data_traits() | (
            {"binary_inputs"} if self.binarised == "threshold" else frozenset()
        )

    @property
    def files(self) -> ImageFiles:
        return ImageFiles(self.name, self.title, self.name, "digits-enlarged", self.offline)

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``load`` would use; may download them.

        Raises:
            DataUnavailableError: the files cannot be had and ``offline`` is error."""
        name = self.files.identity(data_dir, offline)
        return name if self.binarised == "none" else f"{name}-{self.binarised}"

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        problem = self.files.problem(
            rng, setting, self.n_train, self.n_test, self.batch_size, self.task
        )
        if self.binarised == "none":
            return problem
        train, test = (replace(b, x=(b.x > HALF).to(b.x)) for b in (problem.train, problem.test))
        name = self.identity(setting.data_dir, setting.offline)
        return replace(problem, name=name, train=train, test=test, domain="binary")
