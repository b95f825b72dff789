"""CIFAR-10's small colour photographs, or coloured digits as a substitute."""

from __future__ import annotations

import functools
import tarfile
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from pydantic import Field, PositiveInt

from components.contracts.problems import Batch
from components.contracts.roles import Setting
from components.contracts.streams import Rng
from components.datasets.images.mnist_files import Images, enlarged_digits
from components.datasets.labelled_rows import labelled_rows
from components.datasets.stand_in import FileOrSimulationDataset
from components.errors import DamagedFileError
from components.figures.supervised.calibration import calibration
from components.problems.supervised import Supervised
from components.registry import register

ARCHIVE = "cifar10/cifar-10-binary.tar.gz"
SIDE = 32
COLOURS = 3
# bytes of an image: its class, then red, green and blue row by row
RECORD = 1 + COLOURS * SIDE * SIDE


@functools.lru_cache(maxsize=1)
def read_cifar10(path: Path) -> tuple[Images, Images]:
    """Training and test images [n, 3, 32, 32] uint8 with their classes.

    Raises:
        DamagedFileError: the archive lacks a file."""
    with tarfile.open(path) as archive:
        parts = {
            Path(member.name).name: member for member in archive if member.name.endswith(".bin")
        }

        def images(names: list[str]) -> Images:
            records = []
            for name in names:
                content = archive.extractfile(parts[name]) if name in parts else None
                if content is None:
                    raise DamagedFileError(
                        f"{path}: does not contain {name}; replace it with `runner data fetch cifar10`"
                    )
                records.append(np.frombuffer(content.read(), np.uint8).reshape(-1, RECORD))
            rows = np.concatenate(records)
            return rows[:, 1:].reshape(-1, COLOURS, SIDE, SIDE), rows[:, 0]

        return images([f"data_batch_{i}.bin" for i in range(1, 6)]), images(["test_batch.bin"])


@functools.lru_cache(maxsize=1)
def coloured_digits() -> tuple[Images, Images]:
    """scikit-learn's digits in 28 × 28, shifted by up to two pixels, with random colours of ink and
    paper; the same in all runs."""
    rng = np.random.default_rng([*b"cifar10-sim"])

    def colourise(images: np.ndarray) -> np.ndarray:
        n = len(images)
        ink = rng.uniform(0.5, 1.0, (n, COLOURS, 1, 1))
        paper = rng.uniform(0.0, 0.6, (n, COLOURS, 1, 1))
        shifted = np.zeros((n, 1, SIDE, SIDE))
        for i, (down, right) in enumerate(rng.integers(0, 5, (n, 2))):
            shifted[i, 0, down : down + 28, right : right + 28] = images[i] / 255
        pixels = paper + shifted * (ink - paper) + rng.normal(0.0, 0.05, (n, COLOURS, SIDE, SIDE))
        return (255 * pixels.clip(0, 1)).round().astype(np.uint8)

    (train, y_train), (test, y_test) = enlarged_digits()
    return (colourise(train), y_train), (colourise(test), y_test)


@register("dataset", "cifar10")
class Cifar10(FileOrSimulationDataset[Supervised]):
    """CIFAR-10: 50,000 training and 10,000 test images of 32 × 32 pixels in three colours in [0,
    1], ten classes.

    Classes 0 … 9 are aeroplane, car, bird, cat, deer, dog, frog, horse, ship, lorry.  Each
    replicate takes ``n_train`` of the training images at random and the first ``n_test`` of the
    test images, without augmentation.  ``standardised`` transforms pixels to (x − m)/s with m and s
    of all training pixels, and the bounds accordingly.  If the archive is unavailable,
    scikit-learn's digits in random colours (1,200 and 597) replace it under the name cifar10-sim
    with a ``SimulatedDataWarning`` warning, unless ``offline`` is error.  x [N, 3072], colour after
    colour.

    Raises DataUnavailableError (the archive is unavailable), DamagedFileError (it does not match
    its checksum).

    Source: Krizhevsky (2009); Gallego (2021), section 1.3.4."""

    kind = "supervised"
    traits = {"images"}
    label_kind = "classes"
    stand_in = "scikit-learn's digits in random colours"
    n_train: Annotated[int, Field(ge=1, le=50_000)] | None
    n_test: Annotated[int, Field(ge=1, le=10_000)]
    batch_size: PositiveInt | None
    standardised: bool

    def file(self) -> str:
        return ARCHIVE

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        name, files = self.locate(setting)
        train, test = read_cifar10(*files) if files else coloured_digits()
        train_rows = torch.randperm(len(train[1]), generator=rng.data)[: self.n_train].numpy()

        pixels = train[0][train_rows].astype(np.float32) / 255
        m, s = (float(pixels.mean()), float(pixels.std())) if self.standardised else (0.0, 1.0)

        def batch(images: np.ndarray, labels: np.ndarray) -> Batch:
            x = setting.tensor(images).flatten(1) / 255
            y = torch.from_numpy(labels.astype(np.int64))[:, None]
            return labelled_rows((x - m) / s, y, setting)

        return Supervised(
            name=name,
            target="classes",
            train=batch(train[0][train_rows], train[1][train_rows]),
            test=batch(test[0][: self.n_test], test[1][: self.n_test]),
            batch_size=self.batch_size,
            n_classes=10,
            task_names=["photographs"],
            bounds=(-m / s, (1 - m) / s),
            image_shape=(COLOURS, SIDE, SIDE),
            figures=[calibration],
        )
