"""Fashion-MNIST in black and white."""

from __future__ import annotations

from components.datasets.images.unlabelled_images import BinarisedImages
from components.registry import register


@register("dataset", "binarised_fashion")
class BinarisedFashion(BinarisedImages):
    """Fashion-MNIST without labels, its 28 × 28 pixels 0 or 1.

    Binarisation is by threshold (1 if the brightness is above ½), static or dynamic, as in
    ``binarised_mnist``.  Splits and substitutes are as in ``images``.  x [N, 784].

    Raises:
        DataUnavailableError: Fashion-MNIST is unavailable and ``offline`` is error.

    Source: Titsias and Ruiz (2019), section 5 (threshold); Xiao, Rasul and Vollgraf (2017),
    section 2.
    """

    folder = "fashion_mnist"
