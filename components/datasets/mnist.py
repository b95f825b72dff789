"""MNIST's handwritten digits as they are."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field, PositiveInt

from components.datasets.files import locate, why_unavailable
from components.datasets.mnist_variations import FILES, SIDE, Images, enlarged_digits, read_idx
from components.figures.calibration import calibration
from components.interfaces import Dataset, Kind, Rng, Setting, Target
from components.problems.supervised import Batch, Supervised
from components.registry import register
from components.trouble import DataUnavailable, SimulatedData

GENUINE, STAND_IN = "mnist", "digits-enlarged"


@register("dataset", "mnist")
class Mnist(Dataset):
    """MNIST: 60,000 training and 10,000 test images of handwritten digits, 28 × 28 pixels in [0, 1], ten classes.

    Each replicate takes ``n_train`` of the training images at random and the first ``n_test`` of the test images.  Where
    MNIST cannot be had, scikit-learn's 8 × 8 digits enlarged to 20 × 20 in the middle of 28 × 28 stand in under the name
    digits-enlarged (1,200 training and 597 test images).  x [N, 784].

    Raises:
        DataUnavailable: MNIST is not there and ``offline`` is error.

    Source: LeCun, Bottou, Bengio and Haffner (1998), section III."""

    kind: ClassVar[Kind] = "supervised"
    target: ClassVar[Target | None] = "classes"
    n_train: Annotated[int, Field(ge=1, le=60_000)] | None
    n_test: Annotated[int, Field(ge=1, le=10_000)]
    offline: Literal["simulate", "error", "always"]
    batch_size: PositiveInt | None

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``load`` would use; may download them.

        Raises:
            DataUnavailable: MNIST cannot be had and ``offline`` is error."""
        if self.offline == "always":
            return STAND_IN
        why = why_unavailable(Path(data_dir), tuple(FILES), offline)
        if why is not None and self.offline == "error":
            raise DataUnavailable(f"{why}; or dataset.offline=simulate to use scikit-learn's digits")
        return GENUINE if why is None else STAND_IN

    def _images(self, name: str, setting: Setting) -> tuple[Images, Images]:
        """Training and test images, and their classes."""
        if name == GENUINE:
            arrays = [read_idx(locate(setting.data_dir, path, setting.offline)) for path in FILES]
            return (arrays[0], arrays[1]), (arrays[2], arrays[3])
        if self.offline != "always":
            why = why_unavailable(setting.data_dir, tuple(FILES), setting.offline)
            warnings.warn(
                f"OTHER DATA: MNIST cannot be had, scikit-learn's 8 × 8 digits take its place; everything is recorded as "
                f"{name} and compares with no published number ({why})",
                SimulatedData,
                stacklevel=3,
            )
        return enlarged_digits()

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        name = self.identity(setting.data_dir, setting.offline)
        train, test = self._images(name, setting)
        n_train = len(train[1]) if self.n_train is None else min(self.n_train, len(train[1]))
        chosen = torch.randperm(len(train[1]), generator=rng.data)[:n_train].numpy()

        def batch(images: np.ndarray, labels: np.ndarray) -> Batch:
            x = torch.tensor(images.reshape(len(images), SIDE * SIDE), device=setting.device, dtype=setting.dtype) / 255
            y = torch.from_numpy(labels.astype(np.int64)).to(setting.device)[:, None]
            return Batch(x, y, torch.ones_like(y, dtype=torch.bool), 1.0)

        return Supervised(
            name=name,
            target="classes",
            train=batch(train[0][chosen], train[1][chosen]),
            test=batch(test[0][: self.n_test], test[1][: self.n_test]),
            batch_size=self.batch_size,
            n_classes=10,
            task_names=["digits"],
            bounds=(0.0, 1.0),
            image_shape=(SIDE, SIDE),
            figures=[calibration],
        )
