"""MNIST's handwritten digits."""

from __future__ import annotations

from components.datasets.images.mnist_files import ImageDataset
from components.registry import register


@register("dataset", "mnist")
class Mnist(ImageDataset):
    """MNIST: 60,000 training and 10,000 test images of handwritten digits, 28 × 28 pixels in [0,
    1], ten classes.

    Each replicate takes ``n_train`` of the training images at random and the first ``n_test`` of
    the test images.  If MNIST is unavailable, scikit-learn's 8 × 8 digits, enlarged to 20 × 20 in
    the middle of 28 × 28, replace it under the name digits-enlarged (1,200 training and 597 test
    images).  x [N, 784].

    Raises:
        DataUnavailableError: MNIST is unavailable and ``offline`` is error.

    Source: LeCun, Bottou, Bengio and Haffner (1998), section III."""

    task = "digits"
