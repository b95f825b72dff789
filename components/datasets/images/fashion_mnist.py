"""Zalando's articles of clothing."""

from __future__ import annotations

from components.datasets.images.mnist_files import ImageDataset
from components.registry import register


@register("dataset", "fashion_mnist")
class FashionMnist(ImageDataset):
    """Fashion-MNIST: 60,000 training and 10,000 test images of ten kinds of clothing, 28 × 28
    pixels in [0, 1].

    Classes 0 … 9 are T-shirt, trousers, pullover, dress, coat, sandal, shirt, trainer, bag, ankle
    boot.  Splits and files are as for MNIST; the classes are harder to separate.  If the files are
    unavailable, scikit-learn's digits replace them as for ``mnist``, under the same name,
    digits-enlarged. x [N, 784].

    Raises:
        DataUnavailableError: Fashion-MNIST is unavailable and ``offline`` is error.

    Source: Xiao, Rasul and Vollgraf (2017), section 2."""

    task = "clothing"
