"""MNIST's handwritten digits as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, PositiveInt

from components.datasets.mnist_files import ImageFiles, Offline
from components.interfaces import Dataset, Kind, Rng, Setting, Target
from components.problems.supervised import Supervised
from components.registry import register


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
    offline: Offline
    batch_size: PositiveInt | None

    @property
    def files(self) -> ImageFiles:
        return ImageFiles("mnist", "MNIST", self.name, "digits-enlarged", self.offline)

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``load`` would use; may download them.

        Raises:
            DataUnavailable: MNIST cannot be had and ``offline`` is error."""
        return self.files.identity(data_dir, offline)

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        return self.files.problem(rng, setting, self.n_train, self.n_test, self.batch_size, "digits")
