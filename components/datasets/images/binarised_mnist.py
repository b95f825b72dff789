"""MNIST in black and white."""

from __future__ import annotations

from typing import ClassVar

from components.datasets.images.unlabelled_images import BinarisedImages
from components.registry import register


@register("dataset", "binarised_mnist")
class BinarisedMnist(BinarisedImages):
    """MNIST without labels, its 28 × 28 pixels 0 or 1: what likelihoods of generative models are printed for.

    static: each pixel of the 70,000 images was drawn once, 1 with the probability that is its brightness; one drawing for all
    runs, as with the file that the literature shares, but another drawing than that file's.  dynamic: drawn anew whenever a
    training image is shown, once for a held-out image.  threshold: whether a pixel is brighter than ½.  The three are named
    apart, for their likelihoods do not compare.  Splits and stand-ins are those of ``images``.  x [N, 784].

    Raises:
        DataUnavailable: MNIST is not there and ``offline`` is error.

    Source: Salakhutdinov and Murray (2008), section 5 (static); Burda, Grosse and Salakhutdinov (2016), section 5 (dynamic)."""

    folder: ClassVar[str] = "mnist"
    title: ClassVar[str] = "MNIST"
