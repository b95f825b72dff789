"""MNIST in black and white."""

from __future__ import annotations

from components.datasets.images.unlabelled_images import BinarisedImages
from components.registry import register


@register("dataset", "binarised_mnist")
class BinarisedMnist(BinarisedImages):
    """MNIST without labels, its 28 × 28 pixels 0 or 1.

    Published likelihoods of generative models refer to these data.

    static: each pixel of the 70,000 images was drawn once, 1 with probability equal to its
    brightness; all runs share this draw, which differs from the file shared in the literature.
    dynamic: pixels are redrawn each time a training image is used, and drawn once for a held-out
    image.  threshold: a pixel is 1 if its brightness is above ½.  The three have different names
    because their likelihoods are not comparable.  Splits and substitutes are as in ``images``.  x
    [N, 784].

    Raises:
        DataUnavailableError: MNIST is unavailable and ``offline`` is error.

    Source: Salakhutdinov and Murray (2008), section 5 (static); Burda, Grosse and
    Salakhutdinov (2016), section 5 (dynamic).
    """

    folder = "mnist"
