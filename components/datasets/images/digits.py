"""Handwritten digits of 8 × 8 pixels, shipped with scikit-learn."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, PositiveInt, model_validator

from components.contracts.roles import Dataset, Setting
from components.contracts.streams import Rng
from components.datasets.bundled import read_digits
from components.datasets.labelled_rows import labelled_rows
from components.figures.supervised.calibration import calibration
from components.problems.supervised import Supervised
from components.registry import register

IMAGES = 1_797


@register("dataset", "digits")
class Digits(Dataset):
    """Optical recognition of 1,797 handwritten digits of 8 × 8 pixels, ten classes; no download is
    needed.

    Pixels are scaled to [0, 1] from 0 … 16.  A random permutation drawn from the seed
    holds out ``n_test`` images; training takes the first ``n_train`` of the others, so training
    sets of different sizes are nested and share their test images.

    Raises:
        ValueError: n_train + n_test exceed 1,797.

    Source: Alpaydin and Kaynak (1998), UCI optical recognition of handwritten digits, as shipped by
    scikit-learn."""

    kind = "supervised"
    traits = {"images"}
    label_kind = "classes"
    n_train: PositiveInt | None
    n_test: Annotated[int, Field(ge=1, lt=IMAGES)]
    batch_size: PositiveInt | None

    @model_validator(mode="after")
    def _check_image_count(self) -> Digits:
        available = IMAGES - self.n_test
        if self.n_train is not None and self.n_train > available:
            raise ValueError(
                f"n_train: only {available} of the {IMAGES} images are left for training; lower dataset.n_train or "
                "dataset.n_test"
            )
        return self

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        pixels, classes = read_digits()
        x = torch.from_numpy(pixels / 16.0).to(setting.dtype)  # [1797, 64]
        y = torch.from_numpy(classes)[:, None]  # [1797, 1]
        n_train = IMAGES - self.n_test if self.n_train is None else self.n_train
        order = torch.randperm(len(x), generator=rng.data)
        test = order[: self.n_test]
        train = order[self.n_test : self.n_test + n_train]

        return Supervised(
            name=self.name,
            target="classes",
            train=labelled_rows(x[train], y[train], setting),
            test=labelled_rows(x[test], y[test], setting),
            batch_size=self.batch_size,
            n_classes=10,
            task_names=["digits"],
            bounds=(0.0, 1.0),
            image_shape=(8, 8),
            figures=[calibration],
        )
