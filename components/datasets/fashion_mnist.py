"""Zalando's articles of clothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, PositiveInt

from components.datasets.mnist_files import ImageFiles, Offline
from components.interfaces import Dataset, Kind, Rng, Setting, Target
from components.problems.supervised import Supervised
from components.registry import register


@register("dataset", "fashion_mnist")
class FashionMnist(Dataset):
    """Fashion-MNIST: 60,000 training and 10,000 test images of ten kinds of clothing, 28 × 28 pixels in [0, 1].

    Classes 0 … 9 are T-shirt, trousers, pullover, dress, coat, sandal, shirt, trainer, bag, ankle boot.  Splits and files
    are as MNIST's, harder to tell apart.  Where they cannot be had, scikit-learn's digits stand in as they do for
    ``mnist``, under the same name, digits-enlarged.  x [N, 784].

    Raises:
        DataUnavailable: Fashion-MNIST is not there and ``offline`` is error.

    Source: Xiao, Rasul and Vollgraf (2017), section 2."""

    kind: ClassVar[Kind] = "supervised"
    target: ClassVar[Target | None] = "classes"
    n_train: Annotated[int, Field(ge=1, le=60_000)] | None
    n_test: Annotated[int, Field(ge=1, le=10_000)]
    offline: Offline
    batch_size: PositiveInt | None

    @property
    def files(self) -> ImageFiles:
        return ImageFiles("fashion_mnist", "Fashion-MNIST", self.name, "digits-enlarged", self.offline)

    def identity(self, data_dir: Path, offline: bool) -> str:
        """The name of the data that ``load`` would use; may download them.

        Raises:
            DataUnavailable: Fashion-MNIST cannot be had and ``offline`` is error."""
        return self.files.identity(data_dir, offline)

    def load(self, rng: Rng, setting: Setting) -> Supervised:
        return self.files.problem(rng, setting, self.n_train, self.n_test, self.batch_size, "clothing")
